// How long something takes usually, and when it is late. Thread-compatible.
#pragma once

#include <algorithm>

namespace stoker::stage {

class UsualTime {
 public:
  void add(double seconds) { mean_s_ = mean_s_ == 0 ? seconds : mean_s_ + (seconds - mean_s_) / 10; }
  /// Seconds, at least `least_s`.
  double late_after(double least_s) const { return std::max(least_s, 8 * mean_s_); }

 private:
  double mean_s_ = 0;  // moving average
};

}  // namespace stoker::stage
