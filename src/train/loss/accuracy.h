// Top-1 and top-5 counts of a classifier. No libtorch. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::train {

struct Correct {
  std::int64_t top1 = 0;
  std::int64_t top5 = 0;
};

/// Counts samples whose label has the highest score, or one of the five highest, of `classes` scores. The
/// rank of a score is the number of larger scores plus the number of equal scores before it, so ties resolve
/// as in argmax. NaN is larger than every number, as in PyTorch. REQUIRES: scores.size() == labels.size() *
/// classes, labels in range.
Correct count_correct(std::span<const float> scores, std::span<const std::int64_t> labels,
                      std::int64_t classes);

}  // namespace stoker::train
