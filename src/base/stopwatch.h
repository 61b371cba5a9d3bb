// Measures where time goes. One Stopwatch belongs to one thread.
#pragma once

#include "base/time.h"

namespace stoker {

/// The time by the monotonic clock, for what measures itself and is told no clock.
inline MonoTime mono_now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

/// Time since construction or the last lap, on the monotonic clock.
class Stopwatch {
 public:
  Stopwatch() : start_(mono_now()) {}
  /// Seconds since construction or the last lap.
  double seconds() const { return Seconds(mono_now() - start_).count(); }
  /// The same, and starts again.
  double lap() {
    const MonoTime t = mono_now();
    const double s = Seconds(t - start_).count();
    start_ = t;
    return s;
  }

 private:
  MonoTime start_;
};

}  // namespace stoker
