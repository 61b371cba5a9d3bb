// Measures where time goes. One object belongs to one thread.
#pragma once

#include "base/time.h"

namespace stoker {

/// Time since construction or the last lap, on the monotonic clock.
class Stopwatch {
 public:
  Stopwatch() : start_(now()) {}
  /// Seconds since construction or the last lap.
  double seconds() const { return Seconds(now() - start_).count(); }
  /// The same, and starts again.
  double lap() {
    const MonoTime t = now();
    const double s = Seconds(t - start_).count();
    start_ = t;
    return s;
  }

 private:
  static MonoTime now() { return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()); }
  MonoTime start_;
};

}  // namespace stoker
