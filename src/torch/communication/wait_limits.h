// How long a rank may wait for another one before that is said, and before it is an end: from how long steps
// take. Used by ProcessGroup. One thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/time.h"

namespace stoker::torch {

class WaitLimits {
 public:
  /// `answer_within`: what was asked for; waits end no earlier, whatever steps take.
  explicit WaitLimits(Duration answer_within) : answer_within_(answer_within) {}

  void saw_step(double seconds) {
    steps_[count_ % steps_.size()] = seconds;
    longest_ = std::max(longest_, seconds);
    count_ += 1;
  }
  /// Then it is said who is missing. A minute while steps are the first ones, which are slow; later ten usual
  /// steps or twice the longest one there was (with a checkpoint, say), and no less than five seconds.
  Duration named_after() const {
    if (count_ < kFirst) return std::chrono::minutes(1);
    return in_seconds(std::max({5.0, 10 * usual(), 2 * longest_}));
  }
  /// Then the wait fails. What was asked for, or twenty of the longest steps there were.
  Duration ended_after() const { return std::max(answer_within_, in_seconds(20 * longest_)); }

 private:
  static constexpr std::size_t kFirst = 5;
  static Duration in_seconds(double seconds) {
    return std::chrono::duration_cast<Duration>(Seconds(seconds));
  }
  double usual() const {
    std::array<double, 32> sorted = steps_;
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(count_, sorted.size()));
    const auto middle = sorted.begin() + (end - sorted.begin()) / 2;
    std::nth_element(sorted.begin(), middle, end);
    return *middle;
  }

  const Duration answer_within_;
  std::array<double, 32> steps_{};  ///< the latest ones
  std::size_t count_ = 0;
  double longest_ = 0;
};

}  // namespace stoker::torch
