// Several datasets as one: their samples and shards are concatenated, and a loader with Shuffle::mixed draws
// from each its share. Thread-safe if its sources are.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dataset/shard_source.h"
#include "loader/sampler/mixture.h"
#include "stoker/status.h"

namespace stoker::loader {

class MixedSource final : public dataset::ShardSource {
 public:
  /// `sources` must outlive the result. Fails with Invalid when it is empty, only some sources have labels,
  /// or their classes have different names.
  static Result<std::unique_ptr<MixedSource>> create(std::vector<const dataset::ShardSource*> sources);

  /// The parts for Shuffle::mixed: the size of each dataset, and its relative weight. Without weights,
  /// datasets are weighted by size. Fails with Invalid unless there is one weight per dataset.
  Result<std::vector<MixturePart>> parts(const std::vector<double>& weights = {}) const;

  const dataset::Manifest& manifest() const override { return manifest_; }
  const dataset::SplitInfo& split() const override { return manifest_.splits[0]; }
  const dataset::SampleTable& samples() const override { return samples_; }
  Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const override;
  void will_need(std::uint32_t shard, std::uint64_t offset, std::uint64_t length) const override;
  Result<std::span<const std::byte>> map(std::uint32_t shard) const override;

 private:
  // The source of a shard, and the shard's index there.
  struct Owner {
    const dataset::ShardSource* source = nullptr;
    std::uint32_t shard = 0;
  };
  explicit MixedSource(std::vector<const dataset::ShardSource*> sources) : sources_(std::move(sources)) {}
  Status merge_schemas();
  void concatenate_shards();
  std::optional<Digest> content() const;

  std::vector<const dataset::ShardSource*> sources_;
  dataset::Manifest manifest_;  // of one split
  dataset::SampleTable samples_;
  std::vector<Owner> owners_;
};

}  // namespace stoker::loader
