// The order of samples: a pure function of (seed, epoch, position), independent of the world size. One of
// the orders is identical to PyTorch's DistributedSampler. Used by the loader and by receipts. Values;
// thread-safe once constructed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "loader/sampler/mixture.h"
#include "loader/sampler/permutation.h"
#include "stoker/sampler.h"
#include "stoker/status.h"
#include "stoker/strong.h"

namespace stoker::loader {

/// The options of the order, for all epochs.
struct OrderOptions {
  std::uint64_t samples = 0;  ///< at least 1; at most 2^32 - 1 with every_epoch and weighted, else 2^48
  std::uint64_t seed = 0;
  Shuffle shuffle = Shuffle::every_epoch;
  /// by_shard: the samples in each shard; by_chunk: in each chunk. Their sum is `samples`.
  std::vector<std::uint64_t> shards = {};
  std::uint32_t window = 16;  ///< by_shard, by_chunk: shards or chunks mixed with each other
  /// weighted: one weight per sample. Shared by the orders of all epochs.
  std::shared_ptr<const WeightTable> weights = {};
  /// mixed: the concatenated datasets; their sum is `samples`. An epoch is `samples` positions of the
  /// mixture, and the next epoch continues there.
  std::vector<MixturePart> mixture = {};
};

/// The samples of one rank in a step, where ranks divide steps by chunk.
struct RankSlice {
  std::uint64_t begin = 0;  ///< the step: positions of all ranks
  std::uint64_t count = 0;
  std::uint64_t first = 0;  ///< of the slice, among the step's samples sorted by the place of their chunks
  std::uint64_t size = 0;
};

/// The order of one epoch, for all ranks.
class EpochOrder {
 public:
  /// every_epoch is torch.randperm(samples) seeded with seed + epoch. Fails with Invalid when `samples` is 0
  /// or too large, or does not fit shards or weights.
  static Result<EpochOrder> create(const OrderOptions& options, Epoch epoch);

  /// Positions of the epoch.
  std::uint64_t samples() const { return samples_; }
  /// The sample at `position`. Positions from samples() on start over, as padding.
  std::uint64_t at(std::uint64_t position) const {
    const std::uint64_t place = position % samples_;
    switch (kind_) {
      case Shuffle::none:
        return place;
      case Shuffle::every_epoch:
        return order_[place];
      case Shuffle::full:
        return permutations_[0].at(place);
      case Shuffle::by_shard:
      case Shuffle::by_chunk:
        return window_sample(place);
      case Shuffle::weighted:
        return weighted_sample(place);
      case Shuffle::mixed:
        return mixture_sample(place);
    }
    return place;
  }
  /// The samples at `position`, `position + step`, `position + 2 step`, ...: the same as at() for each.
  void list(std::uint64_t position, std::uint64_t step, std::span<std::uint64_t> out) const;
  /// The samples of a slice, by position: neighbours are as random as in the step. The slices of a step hold
  /// each of its samples once. Takes time in proportion to the step. REQUIRES: by_chunk, out.size() ==
  /// slice.size.
  void list(const RankSlice& slice, std::span<std::uint64_t> out) const;

 private:
  // A run of shards, in the order of the epoch, whose samples are mixed.
  struct Window {
    std::uint64_t begin = 0;  // position
    std::size_t shard = 0;    // in shard_order_
  };
  EpochOrder(const OrderOptions& options, std::uint64_t epoch);
  void order_shards(const OrderOptions& options);
  Status set_up_mixture(const OrderOptions& options);
  std::size_t window_at(std::uint64_t place) const;
  std::uint64_t window_sample(std::uint64_t place) const;
  double depth(std::uint64_t place) const;
  std::uint64_t weighted_sample(std::uint64_t place) const;
  std::uint64_t mixture_sample(std::uint64_t place) const;

  std::uint64_t samples_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
  Shuffle kind_;
  std::vector<std::uint32_t> order_;       // every_epoch
  std::vector<Permutation> permutations_;  // full: one; by_shard: of each window
  std::vector<Window> windows_;            // by_shard, by_chunk
  struct ShardPlace {
    std::uint64_t first_sample = 0;
    std::uint64_t samples = 0;
  };
  std::vector<ShardPlace> shard_order_;         // by_shard, by_chunk
  std::shared_ptr<const WeightTable> weights_;  // shared with the options
  std::optional<Mixture> mixture_;              // mixed
  std::vector<std::uint64_t> dataset_begins_;   // mixed: number of each dataset's first sample
};

/// The positions of one rank in an epoch from a global position on: begin + rank, then every world-th. From
/// position 0 this is the order of DistributedSampler. With by_chunk, ranks divide the same positions
/// differently, step by step: slice().
class RankShare {
 public:
  /// A position after the last sample leaves nothing. Fails with Invalid when the rank is not below the
  /// world size.
  static Result<RankShare> create(std::uint64_t samples, std::uint64_t begin, const RankOptions& options);

  /// Samples of this rank.
  std::uint64_t count() const { return count_; }
  /// Samples of the rank with the most; differs from count() only with Remainder::exact.
  std::uint64_t max_count() const { return max_count_; }
  /// The global position of this rank's i-th sample. REQUIRES: i < count().
  std::uint64_t position(std::uint64_t i) const { return begin_ + i * world_ + rank_; }
  /// The samples of this rank by chunk, in a step of `batch` samples per rank after `taken` samples of the
  /// rank. The slice has as many samples as positions of the rank, and the slices of all ranks together have
  /// the same samples. REQUIRES: taken < count(), and all ranks take steps of one size.
  RankSlice slice(std::uint64_t taken, std::uint64_t batch) const;
  /// The distance between positions of this rank.
  std::uint64_t step() const { return world_; }
  /// Whether the i-th sample only pads the rank, and appeared before: a mask that keeps scores over padded
  /// batches exact. REQUIRES: i < count().
  bool is_padding(std::uint64_t i) const { return position(i) >= samples_; }
  /// The global position once every rank has taken `taken` samples (or all it has).
  std::uint64_t position_after(std::uint64_t taken) const;

 private:
  RankShare() = default;

  std::uint64_t samples_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;  // global position at which the epoch is over
  std::uint64_t rank_ = 0;
  std::uint64_t world_ = 1;
  std::uint64_t count_ = 0;
  std::uint64_t max_count_ = 0;
};

}  // namespace stoker::loader
