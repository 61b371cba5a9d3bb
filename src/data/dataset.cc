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

std::uint64_t Dataset::named_classes() const { return source_->manifest().schema.classes.size(); }

std::uint64_t Dataset::label_bound() const {
  std::int64_t largest = -1;
  const formats::SampleTable& samples = source_->samples();
  for (std::uint64_t i = 0; i < samples.size(); ++i)
    largest = std::max(largest, samples.label(i).value_or(-1));
  return static_cast<std::uint64_t>(largest + 1);
}

}  // namespace stoker::data
