// In which order samples are read: a pure function of (seed, epoch, position), whatever the world size; on
// request the same as PyTorch's DistributedSampler gives. Used by the loader and by whoever proves what was
// read. Values; thread-safe once made.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/strong.h"
#include "data/order/mixture.h"
#include "data/order/permutation.h"
#include "data/order/weights.h"

namespace stoker::data {

/// How an epoch is ordered. All but `none` have another order in every epoch.
enum class Shuffle {
  none,         ///< 0, 1, 2, ...
  every_epoch,  ///< torch.randperm's, as DistributedSampler: 4 bytes per sample
  full,         ///< any order is as likely as with every_epoch, in no memory
  by_shard,     ///< shards in random order, samples mixed within a window of them: for slow random reads
  by_chunk,     ///< as by_shard with packed chunks in place of shards: each is unpacked once, and ranks
                ///< share a step by chunk (RankShare::piece)
  weighted,     ///< drawn with replacement, by weight
  mixed,        ///< several datasets with fixed shares: see Mixture
};

/// What happens when the samples left do not divide by the world size.
enum class Remainder {
  pad,    ///< the first samples of the order are read again, so that all ranks get the same count
  drop,   ///< the last samples of the order are left out, so that all ranks get the same count
  exact,  ///< every sample once: the first ranks get one sample more than the others
};

/// What decides the order of all epochs.
struct OrderOptions {
  std::uint64_t samples = 0;  ///< at least 1; at most 2^32 - 1 with every_epoch and weighted, else 2^48
  std::uint64_t seed = 0;
  Shuffle shuffle = Shuffle::every_epoch;
  /// by_shard: how many samples each has; by_chunk: those of each chunk. Their sum is `samples`.
  std::vector<std::uint64_t> shards = {};
  std::uint32_t window = 16;  ///< by_shard, by_chunk: so many of them are mixed with each other
  /// weighted: one for each sample. Shared by the orders of all epochs.
  std::shared_ptr<const WeightTable> weights = {};
  /// mixed: the datasets that lie one behind the other; their sum is `samples`. An epoch is so many positions
  /// of the mixture, and the next one goes on with it.
  std::vector<MixturePart> mixture = {};
};

/// Where a training is in its data: all there is to save. `position` counts samples of this epoch's order
/// that all ranks together have taken, so it means the same on any number of ranks.
struct OrderState {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;
  std::uint64_t samples = 0;  ///< of the dataset the state belongs to: another one is refused

  bool operator==(const OrderState&) const = default;
};

/// "seed 7, epoch 3, position 25600 of 50000".
std::string to_text(const OrderState& state);

/// What one rank takes of a stretch of positions, where ranks divide it by chunk.
struct StretchPiece {
  std::uint64_t begin = 0;  ///< the stretch: what all ranks take in a step
  std::uint64_t count = 0;
  std::uint64_t first = 0;  ///< of the piece, among the stretch's samples by where their chunks stand
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
  /// The sample at `position`. Positions from samples() on start over: that is the padding.
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
        return in_window(place);
      case Shuffle::weighted:
        return drawn(place);
      case Shuffle::mixed:
        return mixed(place);
    }
    return place;
  }
  /// Those at `position`, `position + step`, `position + 2 step`, ...: what at() gives for each.
  void list(std::uint64_t position, std::uint64_t step, std::span<std::uint64_t> out) const;
  /// The samples of a piece, by position: neighbours in it are as random as in the stretch. Pieces that make
  /// up a stretch hold each of its samples once. Takes time in proportion to the stretch. REQUIRES: by_chunk,
  /// out.size() == piece.size.
  void list(const StretchPiece& piece, std::span<std::uint64_t> out) const;

 private:
  // A run of shards, in the order of the epoch, whose samples are mixed.
  struct Window {
    std::uint64_t begin = 0;  // position
    std::size_t shard = 0;    // in shard_order_
  };
  EpochOrder(const OrderOptions& options, std::uint64_t epoch);
  void lay_out_shards(const OrderOptions& options);
  Status mix(const OrderOptions& options);
  std::size_t window_at(std::uint64_t place) const;
  std::uint64_t in_window(std::uint64_t place) const;
  double depth(std::uint64_t place) const;
  std::uint64_t drawn(std::uint64_t place) const;
  std::uint64_t mixed(std::uint64_t place) const;

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

/// Which rank of how many, and how uneven counts are settled.
struct RankOptions {
  Rank rank{0};
  WorldSize world{1};
  Remainder remainder = Remainder::pad;
};

/// The positions one rank takes of an epoch from a global position on: begin + rank, then every world-th.
/// From position 0 this is what DistributedSampler yields. With by_chunk, ranks divide the same positions
/// step by step in another way: piece().
class RankShare {
 public:
  /// A position from the last sample on leaves nothing. Fails with Invalid when the rank is not below the
  /// world size.
  static Result<RankShare> create(std::uint64_t samples, std::uint64_t begin, const RankOptions& options);

  /// How many samples this rank takes.
  std::uint64_t count() const { return count_; }
  /// How many samples the rank with the most takes; differs from count() only with Remainder::exact.
  std::uint64_t longest() const { return longest_; }
  /// The global position of this rank's i-th sample. REQUIRES: i < count().
  std::uint64_t position(std::uint64_t i) const { return begin_ + i * world_ + rank_; }
  /// What this rank takes, by chunk, once `taken` of its samples are taken, in a step of `batch` a rank. As
  /// many as its positions are, and together with the other ranks' the same samples. REQUIRES: taken <
  /// count(), and all ranks take steps of one size.
  StretchPiece piece(std::uint64_t taken, std::uint64_t batch) const;
  /// From one of this rank's positions to the next.
  std::uint64_t step() const { return world_; }
  /// Whether the i-th sample is there only to make ranks even, and was taken before: the mask with which
  /// scores over padded batches stay exact. REQUIRES: i < count().
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
  std::uint64_t longest_ = 0;
};

}  // namespace stoker::data
