// A fragment: "<crc32c of the rest, 8 hex digits>\n<JSON, one line>\n<index section>".

#include "base/hash.h"
#include "base/json/json.h"
#include "data/pack/shard/shard_writer.h"
#include "data/pack/shard/stored_number_internal.h"

namespace stoker::data {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kCrcDigits = 8;

Json images_json(const formats::ImageStatistics& i) {
  return {i.images,       i.progressive,         i.grayscale,   i.cmyk,       i.alpha,  i.misnamed,
          i.width_min,    i.width_max,           i.height_min,  i.height_max, i.pixels, i.channels.pixels,
          i.channels.sum, i.channels.square_sum, i.encoded_anew};
}

formats::ImageStatistics images_of(const Json& json) {
  return {.images = stored_number(json.at(0)),
          .progressive = stored_number(json.at(1)),
          .grayscale = stored_number(json.at(2)),
          .cmyk = stored_number(json.at(3)),
          .alpha = stored_number(json.at(4)),
          .misnamed = stored_number(json.at(5)),
          .width_min = stored_number_32(json.at(6)),
          .width_max = stored_number_32(json.at(7)),
          .height_min = stored_number_32(json.at(8)),
          .height_max = stored_number_32(json.at(9)),
          .pixels = stored_number(json.at(10)),
          .channels = {.pixels = stored_number(json.at(11)),
                       .sum = stored_numbers(json.at(12)),
                       .square_sum = stored_numbers(json.at(13))},
          .encoded_anew = stored_number(json.at(14))};
}

// Throws nlohmann's exceptions for a document of another shape; the CRC held, so only another version wrote
// it.
ShardFacts facts_of(const Json& json) {
  ShardFacts facts;
  facts.bytes = stored_number(json.at("bytes"));
  facts.samples = stored_number(json.at("samples"));
  facts.images = images_of(json.at("images"));
  for (const Json& block : json.at("blocks")) {
    const Result<Digest> digest = parse_digest(block.get<std::string>());
    facts.blocks.push_back(digest.ok() ? *digest : Digest{});
  }
  for (const Json& file : json.at("left_out")) facts.left_out.push_back({file.at(0), file.at(1), file.at(2)});
  return facts;
}

}  // namespace

std::string ShardFacts::encode(std::string_view fingerprint) const {
  Json json = {
      {"plan", fingerprint}, {"bytes", bytes}, {"samples", samples}, {"images", images_json(images)}};
  json["blocks"] = Json::array();
  for (const Digest& block : blocks) json["blocks"].push_back(hex(block));
  json["left_out"] = Json::array();
  for (const LeftOut& file : left_out)
    json["left_out"].push_back({printable(file.path), file.reason, file.detail});
  const std::string body = json_text(json) + "\n" + section;
  return format("{:08x}\n{}", crc32c(body), body);
}

Result<ShardFacts> ShardFacts::decode(std::string_view text, std::string_view fingerprint,
                                      std::string_view subject) {
  const std::string_view body = text.size() > kCrcDigits ? text.substr(kCrcDigits + 1) : "";
  if (body.empty() || text.substr(0, kCrcDigits) != format("{:08x}", crc32c(body))) {
    return corrupt("{}: fragment is damaged", subject);
  }
  const std::size_t line = body.find('\n');
  if (line == std::string_view::npos) return corrupt("{}: fragment is damaged", subject);
  try {
    const Json json = parse_json<Json>(body.substr(0, line));
    if (json.at("plan") != fingerprint) return corrupt("{}: fragment of another plan", subject);
    ShardFacts facts = facts_of(json);
    facts.section = std::string(body.substr(line + 1));
    return facts;
  } catch (const Json::exception&) {
    return corrupt("{}: fragment of another version", subject);
  }
}

}  // namespace stoker::data
