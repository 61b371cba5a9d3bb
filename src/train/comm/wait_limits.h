// When a waiting rank reports a straggler, and when it times out, derived from the duration of steps. Used by
// ProcessGroup. One thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "stoker/time.h"

namespace stoker::train {

class WaitLimits {
 public:
  /// `call_timeout`: the configured timeout. It is the minimum for every step time.
  explicit WaitLimits(Duration call_timeout) : call_timeout_(call_timeout) {}

  void record_step_time(double seconds) {
    steps_[count_ % steps_.size()] = seconds;
    longest_ = std::max(longest_, seconds);
    count_ += 1;
  }
  /// When a straggler is reported. One minute during the slow first steps; later ten median steps or twice
  /// the longest one (which may include a checkpoint), and at least five seconds.
  Duration straggler_after() const {
    if (count_ < kFirst) return std::chrono::minutes(1);
    return in_seconds(std::max({5.0, 10 * usual(), 2 * longest_}));
  }
  /// When a wait times out: the configured timeout, or twenty times the longest step if that is longer.
  Duration ended_after() const { return std::max(call_timeout_, in_seconds(20 * longest_)); }

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

  const Duration call_timeout_;
  std::array<double, 32> steps_{};  ///< the latest ones
  std::size_t count_ = 0;
  double longest_ = 0;
};

}  // namespace stoker::train
