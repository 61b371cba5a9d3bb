#include "train/loss/accuracy.h"

#include <cmath>

namespace stoker::train {

namespace {

bool is_larger(float a, float b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

std::int64_t place_of(std::span<const float> scores, std::int64_t label) {
  const float mine = scores[static_cast<std::size_t>(label)];
  std::int64_t place = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(scores.size()); ++i) {
    const float other = scores[static_cast<std::size_t>(i)];
    if (is_larger(other, mine) || (i < label && !is_larger(mine, other))) ++place;
  }
  return place;
}

}  // namespace

Correct count_correct(std::span<const float> scores, std::span<const std::int64_t> labels,
                      std::int64_t classes) {
  Correct correct;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = scores.subspan(i * static_cast<std::size_t>(classes), static_cast<std::size_t>(classes));
    const std::int64_t place = place_of(row, labels[i]);
    correct.top1 += place < 1 ? 1 : 0;
    correct.top5 += place < 5 ? 1 : 0;
  }
  return correct;
}

}  // namespace stoker::train
