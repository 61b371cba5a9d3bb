#include <algorithm>

#include "base/hash.h"
#include "data/pack/outline.h"
#include "data/pack/pack.h"
#include "data/pack/shard/shard_writer.h"
#include "format/side_index.h"

namespace stoker::data {

std::string left_out_text(const std::map<std::string, std::uint64_t>& left_out) {
  std::vector<std::string> parts;
  for (const auto& [reason, count] : left_out) {
    if (reason != kHidden) parts.push_back(format("{} {}", grouped(count), reason));
  }
  return join(parts, ", ");
}

std::uint64_t counted(const std::map<std::string, std::uint64_t>& left_out) {
  std::uint64_t files = 0;
  for (const auto& [reason, count] : left_out) files += reason == kHidden ? 0 : count;
  return files;
}

namespace {

// Paths as they are shown, by which they are sorted: so parts and a resumed call have stored them.
std::vector<LeftOut> collect_left_out(const Outline& outline, std::vector<ShardFacts>& facts) {
  std::vector<LeftOut> all = outline.left_out;
  for (ShardFacts& shard : facts)
    std::move(shard.left_out.begin(), shard.left_out.end(), std::back_inserter(all));
  for (LeftOut& file : all) file.path = printable(file.path);
  std::sort(all.begin(), all.end());
  return all;
}

std::string csv_field(std::string_view text) {
  const std::string shown = printable(text);
  if (shown.find_first_of(",\"") == std::string::npos) return shown;
  std::string quoted = "\"";
  for (char c : shown) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string to_csv(const std::vector<LeftOut>& left_out) {
  if (left_out.empty()) return {};
  std::string text = "path,reason,detail\n";
  for (const LeftOut& file : left_out) {
    text += format("{},{},{}\n", csv_field(file.path), csv_field(file.reason), csv_field(file.detail));
  }
  return text;
}

// Too much was left out, or anything when that is an error.
Status check_left_out(const Outline& outline, const std::vector<LeftOut>& left_out, std::uint64_t counted) {
  const double percent =
      100.0 * static_cast<double>(counted) / static_cast<double>(std::max<std::uint64_t>(1, outline.files));
  const bool too_many = percent > outline.most_left_out_percent;
  if (counted == 0 || (!too_many && !outline.is_strict)) return {};
  constexpr std::size_t kShown = 5;
  std::string some;
  std::size_t shown = 0;
  for (const LeftOut& file : left_out) {
    if (file.reason == kHidden || shown++ >= kShown) continue;
    some += format("\n    {}: {}{}", printable(file.path), file.reason,
                   file.detail.empty() ? "" : " (" + printable(file.detail) + ")");
  }
  if (shown > kShown) some += format("\n    and {} more", grouped(shown - kShown));
  const std::string what = format("{}: {} of {} files are no images or broken", printable(outline.source),
                                  grouped(counted), grouped(outline.files));
  if (!too_many) return corrupt("{} (--strict){}", what, some);
  return corrupt("{}, more than {} % (--most-left-out){}", what, outline.most_left_out_percent, some);
}

// The manifest but for the index, which is made from the same sections.
Result<formats::Manifest> describe(const Outline& outline, const std::vector<ShardFacts>& facts) {
  formats::Manifest manifest;
  formats::Schema& schema = manifest.schema;
  schema.container = outline.container;
  schema.block_hash = outline.hash;
  schema.has_labels = outline.has_labels;
  schema.classes = outline.classes;
  for (const std::string& name : outline.splits) {
    manifest.splits.push_back({.name = name, .samples = 0, .shards = {}, .class_samples = {}});
    manifest.splits.back().class_samples.resize(schema.classes.size());
  }
  std::vector<std::string> components;
  std::vector<formats::IndexSection> sections;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const ShardFacts& shard = facts[i];
    formats::SplitInfo& split = manifest.splits[outline.shards[i].split];
    OK_OR_RETURN(section, formats::IndexSection::parse(std::as_bytes(std::span(shard.section)),
                                                       outline.shards[i].file));
    split.shards.push_back({.file = outline.shards[i].file,
                            .bytes = shard.bytes,
                            .samples = shard.samples,
                            .hash = formats::shard_hash(shard.blocks),
                            .blocks = shard.blocks});
    split.samples += shard.samples;
    if (!schema.classes.empty()) {
      if (const auto sample = formats::count_classes(section, split.class_samples)) {
        return corrupt("{}: sample {} has label {} of {} classes", outline.shards[i].file, *sample,
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
    schema.components.push_back({.name = name, .is_image = is_image_extension(name)});
  }
  if (formats::leaves_labels_to_index(schema)) manifest.content = formats::content_of(sections);
  manifest.version = formats::dataset_version(manifest);
  return manifest;
}

Status check_classes(const Outline& outline, const formats::Manifest& manifest) {
  for (const formats::SplitInfo& split : manifest.splits) {
    if (split.samples == 0) {
      return invalid("{}: split '{}' has no good image", printable(outline.source), split.name);
    }
  }
  for (std::size_t c = 0; c < manifest.schema.classes.size(); ++c) {
    std::uint64_t samples = 0;
    for (const formats::SplitInfo& split : manifest.splits) samples += split.class_samples[c];
    if (samples == 0) {
      return invalid("{}: class '{}' has no good image", printable(outline.source),
                     printable(manifest.schema.classes[c]));
    }
  }
  return {};
}

// What the dataset is, if what was packed may be one.
Result<formats::Manifest> judge(const Outline& outline, const std::vector<LeftOut>& left_out,
                                const std::vector<ShardFacts>& facts) {
  std::map<std::string, std::uint64_t> counts;
  for (const LeftOut& file : left_out) ++counts[file.reason];
  RETURN_IF_ERROR(check_left_out(outline, left_out, counted(counts)));
  OK_OR_RETURN(manifest, describe(outline, facts));
  RETURN_IF_ERROR(check_classes(outline, manifest));
  manifest.left_out = std::move(counts);
  manifest.source = outline.version;
  return manifest;
}

}  // namespace

Result<Assembly> assemble(const Outline& outline, std::vector<ShardFacts>& facts) {
  Assembly whole;
  const std::vector<LeftOut> left_out = collect_left_out(outline, facts);
  OK_OR_RETURN(manifest, judge(outline, left_out, facts));
  std::vector<std::string> sections;
  for (ShardFacts& shard : facts) sections.push_back(std::move(shard.section));
  whole.index = formats::encode_index(sections);
  whole.left_out_csv = to_csv(left_out);
  whole.left_out = counted(manifest.left_out);
  manifest.index_bytes = whole.index.size();
  manifest.index_hash = sha256(whole.index);
  whole.manifest = std::move(manifest);
  return whole;
}

}  // namespace stoker::data
