// How many samples a classifier got right. No libtorch. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::torch {

struct Correct {
  std::int64_t top1 = 0;
  std::int64_t top5 = 0;
};

/// Counts samples whose label is the best, or among the five best, of `classes` scores. A score's place is
/// the number of larger scores plus the number of equal ones before it, so ties fall as in argmax;
/// not-a-number is larger than every number, as in PyTorch. REQUIRES: scores.size() == labels.size() *
/// classes, labels in range.
Correct count_correct(std::span<const float> scores, std::span<const std::int64_t> labels,
                      std::int64_t classes);

}  // namespace stoker::torch
