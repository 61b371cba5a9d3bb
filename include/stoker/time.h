// Clocks, deadlines and time formats. Waiting code takes a Deadline. Code that needs the time of day takes a
// Clock, so that tests can use a fake. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/status.h"

namespace stoker {

using Seconds = std::chrono::duration<double>;
using Duration = std::chrono::nanoseconds;
/// Time of day, UTC.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;
/// Monotonic time, comparable on one host only.
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

/// Source of time.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime wall() const = 0;
  virtual MonoTime mono() const = 0;
  /// Blocks for `duration`. A fake clock advances instead.
  virtual void sleep(Duration duration) = 0;
};

/// The system clock.
class RealClock final : public Clock {
 public:
  WallTime wall() const override;
  MonoTime mono() const override;
  void sleep(Duration duration) override;
};

/// A clock that advances only on request. Thread-compatible.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(WallTime start = WallTime(std::chrono::seconds(1'800'000'000))) : wall_(start) {}
  WallTime wall() const override { return wall_; }
  MonoTime mono() const override { return MonoTime(wall_.time_since_epoch()); }
  void sleep(Duration duration) override { wall_ += duration; }
  void advance(Duration duration) { wall_ += duration; }

 private:
  WallTime wall_;
};

/// End of a wait. A value on the real monotonic clock.
class Deadline {
 public:
  /// `duration` from now.
  static Deadline after(Duration duration);
  /// For waits with another limit (a child's deadline, a user at a terminal).
  static Deadline never() { return Deadline(MonoTime::max()); }
  static Deadline at(MonoTime time) { return Deadline(time); }

  bool passed() const;
  /// Not negative; about 292 years for never().
  Duration left() const;
  /// Remaining milliseconds for poll(2), rounded up and at most `cap_ms`. Never -1.
  int poll_ms(int cap_ms = 1'000'000) const;
  MonoTime time() const { return time_; }

 private:
  explicit Deadline(MonoTime time) : time_(time) {}
  MonoTime time_;
};

/// "2026-11-21T10:03:11Z".
std::string utc_text(WallTime time);
/// Unix seconds with fraction.
double unix_seconds(WallTime time);

/// Parses "90s", "20h", "1h30m", "2d", "500ms" and Slurm's "1:30:00" and "2-12:00:00". A unit is required.
/// Errors: "'30' has no unit (write 30s, 30m or 30h)" or "'x' is not a duration (such as 90s, 20h or
/// 1:30:00)".
Result<Duration> parse_duration(std::string_view text);
/// Exact, and parse_duration() reads it back: "20h", "1h30m", "1500ms", "0s".
std::string duration_text(Duration duration);
/// Rounded for display: "11 ms", "4.1 s", "2 min 11 s", "1 h 05 min", "3 d 04 h".
std::string rounded_duration(Duration duration);

}  // namespace stoker
