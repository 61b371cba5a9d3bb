#include "data/pack/outline.h"

#include "base/hash.h"
#include "base/json/json.h"
#include "data/pack/shard/stored_number_internal.h"

namespace stoker::data {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kCrcDigits = 8;

// Throws nlohmann's exceptions for a document of another shape.
Outline outline_of(const Json& json) {
  Outline o;
  o.fingerprint = json.at("plan");
  o.source = json.at("source");
  o.splits = json.at("splits");
  o.classes = json.at("classes");
  o.container = json.at("container");
  o.hash = json.at("hash") == to_text(formats::BlockHash::crc32c) ? formats::BlockHash::crc32c
                                                                  : formats::BlockHash::sha256;
  o.has_labels = json.at("has_labels");
  o.is_strict = json.at("strict");
  o.most_left_out_percent = json.at("most_left_out");
  o.files = stored_number(json.at("files"));
  o.shard_bytes = stored_number(json.at("shard_bytes"));
  o.parts = stored_number_32(json.at("parts"));
  for (const Json& file : json.at("left_out")) o.left_out.push_back({file.at(0), file.at(1), file.at(2)});
  if (const auto version = json.find("version"); version != json.end())
    o.version = {.file = version->at(0),
                 .md5 = version->at(1),
                 .bytes = stored_number(version->at(2)),
                 .files = stored_number(version->at(3))};
  for (const Json& shard : json.at("shards"))
    o.shards.push_back({shard.at(0), stored_number_32(shard.at(1))});
  return o;
}

}  // namespace

std::string Outline::encode() const {
  Json json = {
      {"plan", fingerprint},      {"source", source},           {"splits", splits},
      {"classes", classes},       {"container", container},     {"hash", to_text(hash)},
      {"has_labels", has_labels}, {"strict", is_strict},        {"most_left_out", most_left_out_percent},
      {"files", files},           {"shard_bytes", shard_bytes}, {"parts", parts}};
  json["left_out"] = Json::array();
  // As the list shows them: JSON has no bytes that are no text.
  for (const LeftOut& file : left_out)
    json["left_out"].push_back({printable(file.path), file.reason, file.detail});
  if (version) json["version"] = {version->file, version->md5, version->bytes, version->files};
  json["shards"] = Json::array();
  for (const ShardOutline& shard : shards) json["shards"].push_back({shard.file, shard.split});
  const std::string body = json_text(json) + "\n";
  return format("{:08x}\n{}", crc32c(body), body);
}

Result<Outline> Outline::decode(std::string_view text, std::string_view subject) {
  const std::string_view body = text.size() > kCrcDigits ? text.substr(kCrcDigits + 1) : "";
  if (body.empty() || text.substr(0, kCrcDigits) != format("{:08x}", crc32c(body))) {
    return corrupt("{}: is damaged", subject);
  }
  try {
    Outline outline = outline_of(parse_json<Json>(body));
    for (const ShardOutline& shard : outline.shards) {
      if (shard.split >= outline.splits.size()) return corrupt("{}: is damaged", subject);
    }
    return outline;
  } catch (const Json::exception&) {
    return corrupt("{}: is of another version", subject);
  }
}

}  // namespace stoker::data
