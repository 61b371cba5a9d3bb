// Several datasets as one, their samples and shards one behind the other: with Shuffle::mixed a loader takes
// from each its share. Used by whoever trains on more than one dataset. Thread-safe, as what it is made of.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "data/order/mixture.h"
#include "format/shard_source.h"

namespace stoker::data {

class MixedSource final : public formats::ShardSource {
 public:
  /// `sources` must outlive the result. Fails with Invalid when there are none, some have labels and others
  /// none, or their classes have different names.
  static Result<std::unique_ptr<MixedSource>> create(std::vector<const formats::ShardSource*> sources);

  /// What Shuffle::mixed needs: each dataset's size, and how much of it is wanted relative to the others.
  /// Without weights each dataset counts by its size. Fails with Invalid unless there is one for each.
  Result<std::vector<MixturePart>> parts(const std::vector<double>& weights = {}) const;

  const formats::Manifest& manifest() const override { return manifest_; }
  const formats::SplitInfo& split() const override { return manifest_.splits[0]; }
  const formats::SampleTable& samples() const override { return samples_; }
  Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const override;
  void will_need(std::uint32_t shard, std::uint64_t offset, std::uint64_t length) const override;
  Result<std::span<const std::byte>> map(std::uint32_t shard) const override;

 private:
  // Whose shard it is, and which of its own.
  struct Owner {
    const formats::ShardSource* source = nullptr;
    std::uint32_t shard = 0;
  };
  explicit MixedSource(std::vector<const formats::ShardSource*> sources) : sources_(std::move(sources)) {}
  Status merge_schemas();
  void line_up_shards();
  std::optional<Digest> content() const;

  std::vector<const formats::ShardSource*> sources_;
  formats::Manifest manifest_;  // of one split
  formats::SampleTable samples_;
  std::vector<Owner> owners_;
};

}  // namespace stoker::data
