#include "stoker/dataset.h"

#include <algorithm>
#include <utility>

#include "dataset/shard_source.h"

namespace stoker::dataset {

Dataset::Dataset(std::unique_ptr<dataset::LocalShardSource> source) : source_(std::move(source)) {}
Dataset::Dataset(Dataset&&) noexcept = default;
Dataset& Dataset::operator=(Dataset&&) noexcept = default;
Dataset::~Dataset() = default;

Result<Dataset> Dataset::open(const Path& folder, const std::string& split, LabelPolicy labels) {
  STOKER_ASSIGN_OR_RETURN(source, dataset::LocalShardSource::open(folder, split));
  if (source->samples().size() == 0) {
    return invalid("{}: split '{}' has no samples", folder, source->split().name);
  }
  if (labels == LabelPolicy::required && !source->samples().has_labels())
    return invalid("{}: the samples have no labels", folder);
  return Dataset(std::move(source));
}

const dataset::ShardSource& Dataset::source() const { return *source_; }

void Dataset::set_chunk_cache_limit(ByteCount limit) { source_->set_chunk_cache_limit(limit); }

std::uint64_t Dataset::samples() const { return source_->samples().size(); }

const std::vector<std::string>& Dataset::class_names() const { return source_->manifest().schema.classes; }

Status Dataset::check_labels() const {
  const dataset::SampleTable& samples = source_->samples();
  std::uint64_t without = 0;
  std::uint64_t first = 0;
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    const std::int64_t label = samples.label(i).value_or(-1);
    if (label >= 0 && label < kMaxClasses) continue;
    if (without++ == 0) first = i;
  }
  if (without == 0) return {};
  return invalid(
             "{} of {} samples of split '{}' have no class: the label of '{}' is {} (a class is a number "
             "from 0 to {})",
             without, samples.size(), printable(source_->split().name), printable(samples.key(first)),
             samples.label(first).value_or(-1), kMaxClasses - 1)
      .cure("stoker data lint DATASET lists them; label them or move them to a separate split");
}

std::uint64_t Dataset::label_bound() const {
  std::int64_t largest = -1;
  const dataset::SampleTable& samples = source_->samples();
  for (std::uint64_t i = 0; i < samples.size(); ++i)
    largest = std::max(largest, samples.label(i).value_or(-1));
  return static_cast<std::uint64_t>(largest + 1);
}

}  // namespace stoker::dataset
