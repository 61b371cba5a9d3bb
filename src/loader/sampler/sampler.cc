#include "stoker/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker::loader {

Result<WeightTable> WeightTable::create(std::span<const double> weights) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (weights.size() > kMost)
    return invalid("order: {} weights are too many (at most {})", weights.size(), kMost);
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(weights[i]))
      return invalid("order: weight {} of sample {} is negative or not finite", weights[i], i);
    sum += weights[i];
  }
  if (!(sum > 0)) return invalid("order: all weights are 0");
  if (!std::isfinite(sum)) return invalid("order: the sum of the weights is not finite");
  // Vose's algorithm: an entry above the mean fills up an entry below it.
  const double scale = static_cast<double>(weights.size()) / sum;
  std::vector<Slot> slots(weights.size());
  std::vector<double> rest(weights.size());
  std::vector<std::uint32_t> small_entries, large_entries;
  for (std::uint32_t i = 0; i < weights.size(); ++i) {
    rest[i] = weights[i] * scale;
    (rest[i] < 1 ? small_entries : large_entries).push_back(i);
  }
  while (!small_entries.empty() && !large_entries.empty()) {
    const std::uint32_t small = small_entries.back();
    const std::uint32_t large = large_entries.back();
    small_entries.pop_back();
    slots[small] = {static_cast<std::uint32_t>(std::min(rest[small] * 0x1p32, 0x1p32 - 1)), large};
    rest[large] -= 1 - rest[small];
    if (rest[large] >= 1) continue;
    large_entries.pop_back();
    small_entries.push_back(large);
  }
  // The rest are full but for rounding.
  for (const auto& left : {small_entries, large_entries}) {
    for (std::uint32_t i : left) slots[i] = {std::numeric_limits<std::uint32_t>::max(), i};
  }
  return WeightTable(std::move(slots));
}

std::uint64_t WeightTable::draw(std::uint64_t place, std::uint32_t chance) const {
  // The upper 32 bits select the slot: fewer than 2^32 samples need no more.
  const std::uint64_t i = (place >> 32) * slots_.size() >> 32;
  return chance < slots_[i].share ? i : slots_[i].other;
}

}  // namespace stoker::loader
