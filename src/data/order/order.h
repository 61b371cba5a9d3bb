// In which order samples are read: a pure function of (seed, epoch, position), the same as PyTorch's
// DistributedSampler gives, whatever the world size. Used by the loader and by whoever proves what was read.
// Values; thread-safe once made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/strong.h"

namespace stoker::data {

/// Whether each epoch has its own order.
enum class Shuffle { none, every_epoch };

/// What happens when the samples left do not divide by the world size.
enum class Remainder {
  pad,    ///< the first samples of the order are read again, so that all ranks get the same count
  drop,   ///< the last samples of the order are left out, so that all ranks get the same count
  exact,  ///< every sample once: the first ranks get one sample more than the others
};

/// What decides the order of all epochs.
struct OrderOptions {
  std::uint64_t samples = 0;  ///< 1 to 2^32 - 1
  std::uint64_t seed = 0;
  Shuffle shuffle = Shuffle::every_epoch;
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

/// The order of one epoch, for all ranks.
class EpochOrder {
 public:
  /// torch.randperm(samples) seeded with seed + epoch, or 0, 1, 2, ... without shuffling. Takes 4 bytes per
  /// sample. Fails with Invalid when `samples` is 0 or too large.
  static Result<EpochOrder> create(const OrderOptions& options, Epoch epoch);

  std::uint64_t samples() const { return samples_; }
  /// The sample at `position`. Positions from samples() on start over: that is the padding.
  std::uint64_t at(std::uint64_t position) const {
    const std::uint64_t place = position % samples_;
    return order_.empty() ? place : order_[place];
  }

 private:
  EpochOrder(std::uint64_t samples, std::vector<std::uint32_t> order)
      : samples_(samples), order_(std::move(order)) {}

  std::uint64_t samples_;
  std::vector<std::uint32_t> order_;  // empty: the identity
};

/// Which rank of how many, and how uneven counts are settled.
struct RankOptions {
  Rank rank{0};
  WorldSize world{1};
  Remainder remainder = Remainder::pad;
};

/// The positions one rank takes of an epoch from a global position on: begin + rank, then every world-th.
/// From position 0 this is what DistributedSampler yields.
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
  /// The global position once every rank has taken `taken` samples (or all it has).
  std::uint64_t position_after(std::uint64_t taken) const;

 private:
  RankShare() = default;

  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;  // global position at which the epoch is over
  std::uint64_t rank_ = 0;
  std::uint64_t world_ = 1;
  std::uint64_t count_ = 0;
  std::uint64_t longest_ = 0;
};

}  // namespace stoker::data
