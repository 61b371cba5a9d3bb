#include "pack/dataset_plan.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/table.h"
#include "dataset/side_index.h"
#include "pack/pack.h"
#include "pack/shard/shard_writer.h"
#include "pack/shard/stored_number_internal.h"

namespace stoker::pack {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kCrcDigits = 8;

// Throws nlohmann's exceptions for an unexpected structure.
DatasetPlan parse_dataset_plan(const Json& json) {
  DatasetPlan o;
  o.fingerprint = json.at("plan");
  o.source = json.at("source");
  o.splits = json.at("splits");
  o.classes = json.at("classes");
  o.container = json.at("container");
  o.hash = json.at("hash") == to_text(dataset::BlockHash::crc32c) ? dataset::BlockHash::crc32c
                                                                  : dataset::BlockHash::sha256;
  o.has_labels = json.at("has_labels");
  o.declares_classes = json.value("declares_classes", false);
  o.is_strict = json.at("strict");
  o.max_left_out_percent = json.at("most_left_out");
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

std::string DatasetPlan::encode() const {
  Json json = {
      {"plan", fingerprint},      {"source", source},           {"splits", splits},
      {"classes", classes},       {"container", container},     {"hash", to_text(hash)},
      {"has_labels", has_labels}, {"strict", is_strict},        {"most_left_out", max_left_out_percent},
      {"files", files},           {"shard_bytes", shard_bytes}, {"parts", parts}};
  if (declares_classes) json["declares_classes"] = true;
  json["left_out"] = Json::array();
  // Paths in printable form: JSON strings must be UTF-8.
  for (const sources::LeftOut& file : left_out)
    json["left_out"].push_back({printable(file.path), file.reason, file.detail});
  if (version) json["version"] = {version->file, version->md5, version->bytes, version->files};
  json["shards"] = Json::array();
  for (const PlannedShard& shard : shards) json["shards"].push_back({shard.file, shard.split});
  const std::string body = json_text(json) + "\n";
  return format("{:08x}\n{}", crc32c(body), body);
}

Result<DatasetPlan> DatasetPlan::decode(std::string_view text, std::string_view subject) {
  const std::string_view body = text.size() > kCrcDigits ? text.substr(kCrcDigits + 1) : "";
  if (body.empty() || text.substr(0, kCrcDigits) != format("{:08x}", crc32c(body))) {
    return corrupt("{}: is damaged", subject);
  }
  try {
    DatasetPlan dataset_plan = parse_dataset_plan(parse_json<Json>(body));
    for (const PlannedShard& shard : dataset_plan.shards) {
      if (shard.split >= dataset_plan.splits.size()) return corrupt("{}: is damaged", subject);
    }
    return dataset_plan;
  } catch (const Json::exception&) {
    return corrupt("{}: has a different version", subject);
  }
}

std::string left_out_text(const std::map<std::string, std::uint64_t>& left_out) {
  std::vector<std::string> parts;
  for (const auto& [reason, count] : left_out) {
    if (reason != sources::kHidden) parts.push_back(format("{} {}", grouped(count), reason));
  }
  return join(parts, ", ");
}

std::uint64_t count_left_out(const std::map<std::string, std::uint64_t>& left_out) {
  std::uint64_t files = 0;
  for (const auto& [reason, count] : left_out) files += reason == sources::kHidden ? 0 : count;
  return files;
}

namespace {

// Paths are sorted in their printable form, which is also the form in plans and fragments.
std::vector<sources::LeftOut> collect_left_out(const DatasetPlan& dataset_plan,
                                               std::vector<ShardFacts>& facts) {
  std::vector<sources::LeftOut> all = dataset_plan.left_out;
  for (ShardFacts& shard : facts)
    std::move(shard.left_out.begin(), shard.left_out.end(), std::back_inserter(all));
  for (sources::LeftOut& file : all) file.path = printable(file.path);
  std::sort(all.begin(), all.end());
  return all;
}

std::string to_csv(const std::vector<sources::LeftOut>& left_out) {
  if (left_out.empty()) return {};
  std::string text = "path,reason,detail\n";
  for (const sources::LeftOut& file : left_out) {
    text += format("{},{},{}\n", csv_field(printable(file.path)), csv_field(printable(file.reason)),
                   csv_field(printable(file.detail)));
  }
  return text;
}

// Fails if too many files were left out, or any with --strict. Sets `unlisted` as assemble() does.
Status check_left_out(const DatasetPlan& dataset_plan, const std::vector<sources::LeftOut>& left_out,
                      std::uint64_t counted, std::string* unlisted) {
  const double percent = 100.0 * static_cast<double>(counted) /
                         static_cast<double>(std::max<std::uint64_t>(1, dataset_plan.files));
  const bool too_many = percent > dataset_plan.max_left_out_percent;
  if (counted == 0 || (!too_many && !dataset_plan.is_strict)) return {};
  constexpr std::size_t kShown = 5;
  std::string some;
  std::size_t shown = 0;
  for (const sources::LeftOut& file : left_out) {
    if (file.reason == sources::kHidden || shown++ >= kShown) continue;
    some += format("\n    {}: {}{}", printable(file.path), file.reason,
                   file.detail.empty() ? "" : " (" + printable(file.detail) + ")");
  }
  if (shown > kShown) {
    some += format("\n    and {} more", grouped(shown - kShown));
    *unlisted = to_csv(left_out);
  }
  const std::string what = format("{}: {} of {} files {}", printable(dataset_plan.source), grouped(counted),
                                  grouped(dataset_plan.files),
                                  counted == 1 ? "is broken or not an image" : "are broken or not images");
  if (!too_many)
    return corrupt("{} (--strict){}", what, some).cure("without --strict the other files are packed");
  Status status =
      corrupt("{}, more than {} % (--max-left-out){}", what, dataset_plan.max_left_out_percent, some);
  if (counted >= dataset_plan.files) return status;
  return std::move(status).cure("--max-left-out {}% packs the other files", std::ceil(percent));
}

// The manifest without the fields about the index.
Result<dataset::Manifest> describe(const DatasetPlan& dataset_plan, const std::vector<ShardFacts>& facts) {
  dataset::Manifest manifest;
  dataset::DatasetSchema& schema = manifest.schema;
  schema.container = dataset_plan.container;
  schema.block_hash = dataset_plan.hash;
  schema.has_labels = dataset_plan.has_labels;
  schema.classes = dataset_plan.classes;
  for (const std::string& name : dataset_plan.splits) {
    manifest.splits.push_back({.name = name, .samples = 0, .shards = {}, .class_samples = {}});
    manifest.splits.back().class_samples.resize(schema.classes.size());
  }
  std::vector<std::string> components;
  std::vector<dataset::IndexSection> sections;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const ShardFacts& shard = facts[i];
    dataset::SplitInfo& split = manifest.splits[dataset_plan.shards[i].split];
    STOKER_ASSIGN_OR_RETURN(section, dataset::IndexSection::parse(std::as_bytes(std::span(shard.section)),
                                                                  dataset_plan.shards[i].file));
    split.shards.push_back({.file = dataset_plan.shards[i].file,
                            .bytes = shard.bytes,
                            .samples = shard.samples,
                            .hash = dataset::shard_hash(shard.blocks),
                            .blocks = shard.blocks});
    split.samples += shard.samples;
    if (!schema.classes.empty()) {
      if (const auto sample = dataset::count_classes(section, split.class_samples)) {
        return corrupt("{}: sample {} has label {} of {} classes", dataset_plan.shards[i].file, *sample,
                       section.label(*sample), schema.classes.size());
      }
    }
    components.insert(components.end(), section.names().begin(), section.names().end());
    manifest.images.add(shard.images);
    sections.push_back(std::move(section));
  }
  std::sort(components.begin(), components.end());
  components.erase(std::unique(components.begin(), components.end()), components.end());
  for (const std::string& name : components) {
    schema.components.push_back({.name = name, .is_image = sources::is_image_extension(name)});
  }
  if (dataset::stores_labels_in_index(schema)) manifest.content = dataset::content_digest(sections);
  manifest.version = dataset::dataset_version(manifest);
  return manifest;
}

Status check_classes(const DatasetPlan& dataset_plan, const dataset::Manifest& manifest) {
  for (const dataset::SplitInfo& split : manifest.splits) {
    if (split.samples == 0) {
      return invalid("{}: split '{}' has no valid image", printable(dataset_plan.source), split.name);
    }
  }
  for (std::size_t c = 0; c < manifest.schema.classes.size() && !dataset_plan.declares_classes; ++c) {
    std::uint64_t samples = 0;
    for (const dataset::SplitInfo& split : manifest.splits) samples += split.class_samples[c];
    if (samples == 0) {
      return invalid("{}: class '{}' has no valid image", printable(dataset_plan.source),
                     printable(manifest.schema.classes[c]));
    }
  }
  return {};
}

// The manifest, if the packed data is valid as a dataset.
Result<dataset::Manifest> judge(const DatasetPlan& dataset_plan,
                                const std::vector<sources::LeftOut>& left_out,
                                const std::vector<ShardFacts>& facts, std::string* unlisted) {
  std::map<std::string, std::uint64_t> counts;
  for (const sources::LeftOut& file : left_out) ++counts[file.reason];
  STOKER_RETURN_IF_ERROR(check_left_out(dataset_plan, left_out, count_left_out(counts), unlisted));
  STOKER_ASSIGN_OR_RETURN(manifest, describe(dataset_plan, facts));
  STOKER_RETURN_IF_ERROR(check_classes(dataset_plan, manifest));
  STOKER_RETURN_IF_ERROR(dataset::check_names(manifest, printable(dataset_plan.source)));
  manifest.left_out = std::move(counts);
  manifest.source = dataset_plan.version;
  return manifest;
}

}  // namespace

Result<Assembly> assemble(const DatasetPlan& dataset_plan, std::vector<ShardFacts>& facts,
                          std::string* unlisted) {
  Assembly whole;
  const std::vector<sources::LeftOut> left_out = collect_left_out(dataset_plan, facts);
  STOKER_ASSIGN_OR_RETURN(manifest, judge(dataset_plan, left_out, facts, unlisted));
  std::vector<std::string> sections;
  for (ShardFacts& shard : facts) sections.push_back(std::move(shard.section));
  whole.index = dataset::encode_index(sections);
  whole.left_out_csv = to_csv(left_out);
  whole.left_out = count_left_out(manifest.left_out);
  dataset::describe_index(whole.index, manifest);
  whole.manifest = std::move(manifest);
  return whole;
}

}  // namespace stoker::pack
