// Options of the sampler, which orders the samples of a dataset, its weights and its state. Values;
// thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stoker/choices.h"
#include "stoker/status.h"
#include "stoker/strong.h"

namespace stoker::loader {

/// How to handle samples that do not divide by the world size.
enum class Remainder {
  pad,    ///< repeat the first samples of the order, so that all ranks get the same count
  drop,   ///< drop the last samples of the order, so that all ranks get the same count
  exact,  ///< every sample once: the first ranks get one sample more
};

/// One dataset of Shuffle::mixed.
struct MixturePart {
  std::uint64_t samples = 0;
  double weight = 1;  ///< relative to the other parts
};

/// Rank, world size, and the handling of uneven counts.
struct RankOptions {
  Rank rank{0};
  WorldSize world{1};
  Remainder remainder = Remainder::pad;
};

/// The position of a training in its data: everything a checkpoint needs. `position` counts samples of this
/// epoch's order over all ranks, so it is independent of the number of ranks.
struct OrderState {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;
  std::uint64_t samples = 0;  ///< of the dataset; a different number is refused

  bool operator==(const OrderState&) const = default;
};

/// "seed 7, epoch 3, position 25600 of 50000".
std::string to_text(const OrderState& state);

/// Draws samples with replacement and weights in constant time: Walker's alias table. Immutable, thread-safe.
class WeightTable {
 public:
  /// One weight per sample, in any scale. Takes 8 bytes per sample. Fails with Invalid when a weight is
  /// negative or not finite, or all are 0.
  static Result<WeightTable> create(std::span<const double> weights);

  std::uint64_t samples() const { return slots_.size(); }
  /// The sample for two random numbers of 64 and 32 bits.
  std::uint64_t draw(std::uint64_t place, std::uint32_t chance) const;

 private:
  // Place i is sample i with probability share / 2^32, else sample `other`.
  struct Slot {
    std::uint32_t share = 0;
    std::uint32_t other = 0;
  };
  explicit WeightTable(std::vector<Slot> slots) : slots_(std::move(slots)) {}

  std::vector<Slot> slots_;
};

}  // namespace stoker::loader
