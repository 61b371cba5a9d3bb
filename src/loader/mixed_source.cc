#include "loader/mixed_source.h"

#include <algorithm>

#include "base/hash.h"
#include "base/language/counted.h"
#include "stoker/text.h"

namespace stoker::loader {

Result<std::unique_ptr<MixedSource>> MixedSource::create(std::vector<const dataset::ShardSource*> sources) {
  if (sources.empty()) return invalid("mixture: no datasets");
  std::unique_ptr<MixedSource> mixed(new MixedSource(std::move(sources)));
  STOKER_RETURN_IF_ERROR(mixed->merge_schemas());
  mixed->concatenate_shards();
  return mixed;
}

Status MixedSource::merge_schemas() {
  dataset::DatasetSchema& schema = manifest_.schema;
  schema = sources_[0]->manifest().schema;
  for (std::size_t i = 1; i < sources_.size(); ++i) {
    const dataset::DatasetSchema& other = sources_[i]->manifest().schema;
    if (other.has_labels != schema.has_labels) {
      return invalid("mixture: dataset {} has labels, dataset {} has none", other.has_labels ? i : 0,
                     other.has_labels ? 0 : i);
    }
    if (other.classes != schema.classes) {
      return invalid("mixture: datasets 0 and {} have different classes ({} and {})", i,
                     schema.classes.size(), other.classes.size());
    }
    for (const dataset::ComponentInfo& component : other.components) {
      if (std::find(schema.components.begin(), schema.components.end(), component) == schema.components.end())
        schema.components.push_back(component);
    }
  }
  return Status();
}

// If the manifest of a dataset has a content digest, so has the mixture's.
std::optional<Digest> MixedSource::content() const {
  bool has_content = false;
  std::string versions;
  for (const dataset::ShardSource* source : sources_) {
    has_content = has_content || source->manifest().content;
    versions += source->manifest().version;
  }
  return has_content ? std::optional(sha256(versions)) : std::nullopt;
}

void MixedSource::concatenate_shards() {
  dataset::SplitInfo split{.name = "mixed", .samples = 0, .shards = {}, .class_samples = {}};
  std::vector<const dataset::IndexSection*> sections;
  for (const dataset::ShardSource* source : sources_) {
    const auto& shards = source->split().shards;
    split.samples += source->split().samples;
    split.shards.insert(split.shards.end(), shards.begin(), shards.end());
    const auto& own = source->samples().sections();
    sections.insert(sections.end(), own.begin(), own.end());
    for (std::uint32_t shard = 0; shard < shards.size(); ++shard) owners_.push_back({source, shard});
  }
  manifest_.splits.push_back(std::move(split));
  manifest_.content = content();
  manifest_.version = dataset::dataset_version(manifest_);
  samples_ = dataset::SampleTable(std::move(sections), manifest_.schema);
}

Result<std::vector<MixturePart>> MixedSource::parts(const std::vector<double>& weights) const {
  if (!weights.empty() && weights.size() != sources_.size())
    return invalid("mixture: {} for {}", counted(weights.size(), "weight"),
                   counted(sources_.size(), "dataset"));
  std::vector<MixturePart> parts;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const std::uint64_t samples = sources_[i]->samples().size();
    parts.push_back({samples, weights.empty() ? static_cast<double>(samples) : weights[i]});
  }
  return parts;
}

Status MixedSource::read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const {
  return owners_[shard].source->read(owners_[shard].shard, offset, out);
}

void MixedSource::will_need(std::uint32_t shard, std::uint64_t offset, std::uint64_t length) const {
  owners_[shard].source->will_need(owners_[shard].shard, offset, length);
}

Result<std::span<const std::byte>> MixedSource::map(std::uint32_t shard) const {
  return owners_[shard].source->map(owners_[shard].shard);
}

}  // namespace stoker::loader
