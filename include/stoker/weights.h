// Draws samples with replacement and weights in constant time: Walker's alias table. Used by EpochOrder.
// Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stoker/status.h"

namespace stoker::loader {

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
