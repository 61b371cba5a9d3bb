// Measures elapsed time. One Stopwatch belongs to one thread.
#pragma once

#include "stoker/time.h"

namespace stoker {

/// Monotonic time, for code that takes no Clock.
inline MonoTime mono_now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

/// Time since construction or the last lap, on the monotonic clock.
class Stopwatch {
 public:
  Stopwatch() : start_(mono_now()) {}
  /// Seconds since construction or the last lap.
  double seconds() const { return Seconds(mono_now() - start_).count(); }
  /// Like seconds(), and restarts.
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
