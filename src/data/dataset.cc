#include "data/dataset.h"

#include <algorithm>
#include <utility>

#include "format/shard_source.h"

namespace stoker::data {

Dataset::Dataset(std::unique_ptr<formats::LocalShardSource> source) : source_(std::move(source)) {}
Dataset::Dataset(Dataset&&) noexcept = default;
Dataset& Dataset::operator=(Dataset&&) noexcept = default;
Dataset::~Dataset() = default;

Result<Dataset> Dataset::open(const Path& folder, const std::string& split, Labels labels) {
  OK_OR_RETURN(source, formats::LocalShardSource::open(folder, split));
  if (source->samples().size() == 0) {
    return invalid("{}: split '{}' has no samples", folder, source->split().name);
  }
  if (labels == Labels::needed && !source->samples().has_labels())
    return invalid("{}: the samples have no labels", folder);
  return Dataset(std::move(source));
}

const formats::ShardSource& Dataset::source() const { return *source_; }

void Dataset::keep_chunks(ByteCount limit) { source_->keep_chunks(limit); }

std::uint64_t Dataset::samples() const { return source_->samples().size(); }

const std::vector<std::string>& Dataset::class_names() const { return source_->manifest().schema.classes; }

Status Dataset::check_labels() const {
  const formats::SampleTable& samples = source_->samples();
  std::uint64_t without = 0;
  std::uint64_t first = 0;
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    const std::int64_t label = samples.label(i).value_or(-1);
    if (label >= 0 && label < kMostClasses) continue;
    if (without++ == 0) first = i;
  }
  if (without == 0) return {};
  return invalid(
             "{} of {} samples of split '{}' have no class: the label of '{}' is {} (a class is a number "
             "from 0 to {})",
             without, samples.size(), printable(source_->split().name), printable(samples.key(first)),
             samples.label(first).value_or(-1), kMostClasses - 1)
      .cure("a class for each, or a split of their own; stoker data lint DATASET looks for such samples");
}

std::uint64_t Dataset::label_bound() const {
  std::int64_t largest = -1;
  const formats::SampleTable& samples = source_->samples();
  for (std::uint64_t i = 0; i < samples.size(); ++i)
    largest = std::max(largest, samples.label(i).value_or(-1));
  return static_cast<std::uint64_t>(largest + 1);
}

}  // namespace stoker::data
