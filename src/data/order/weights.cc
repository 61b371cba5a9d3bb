#include "data/order/weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker::data {

Result<WeightTable> WeightTable::create(std::span<const double> weights) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (weights.size() > kMost)
    return invalid("order: {} weights are too many (at most {})", weights.size(), kMost);
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(weights[i]))
      return invalid("order: weight {} of sample {} is not a number of at least 0", weights[i], i);
    sum += weights[i];
  }
  if (!(sum > 0)) return invalid("order: all weights are 0");
  if (!std::isfinite(sum)) return invalid("order: the weights add up to more than a number holds");
  // Vose: what a place has too little of its own is filled up by one that has too much.
  const double scale = static_cast<double>(weights.size()) / sum;
  std::vector<Slot> slots(weights.size());
  std::vector<double> rest(weights.size());
  std::vector<std::uint32_t> poor, rich;
  for (std::uint32_t i = 0; i < weights.size(); ++i) {
    rest[i] = weights[i] * scale;
    (rest[i] < 1 ? poor : rich).push_back(i);
  }
  while (!poor.empty() && !rich.empty()) {
    const std::uint32_t small = poor.back();
    const std::uint32_t large = rich.back();
    poor.pop_back();
    slots[small] = {static_cast<std::uint32_t>(std::min(rest[small] * 0x1p32, 0x1p32 - 1)), large};
    rest[large] -= 1 - rest[small];
    if (rest[large] >= 1) continue;
    rich.pop_back();
    poor.push_back(large);
  }
  // What is left is whole but for rounding.
  for (const auto& left : {poor, rich}) {
    for (std::uint32_t i : left) slots[i] = {std::numeric_limits<std::uint32_t>::max(), i};
  }
  return WeightTable(std::move(slots));
}

std::uint64_t WeightTable::draw(std::uint64_t place, std::uint32_t chance) const {
  // The upper 32 bits pick the place: fewer than 2^32 samples need no more.
  const std::uint64_t i = (place >> 32) * slots_.size() >> 32;
  return chance < slots_[i].share ? i : slots_[i].other;
}

}  // namespace stoker::data
