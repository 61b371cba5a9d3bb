// Clocks, deadlines and how times are written. Code that waits takes a Deadline; code that needs the time of
// day takes a Clock, so that tests need no real one. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace stoker {

using Seconds = std::chrono::duration<double>;
using Duration = std::chrono::nanoseconds;
/// Time of day, UTC.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;
/// Monotonic time, comparable only on one host.
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

/// Where the time comes from.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime wall() const = 0;
  virtual MonoTime mono() const = 0;
  /// Blocks for `duration`; a fake clock moves on instead.
  virtual void sleep(Duration duration) = 0;
};

/// The machine's clock.
class RealClock final : public Clock {
 public:
  WallTime wall() const override;
  MonoTime mono() const override;
  void sleep(Duration duration) override;
};

/// A clock that moves only when told. Thread-compatible.
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

/// The moment after which a wait gives up. A value; measured on the real monotonic clock.
class Deadline {
 public:
  /// `duration` from now.
  static Deadline after(Duration duration);
  /// For waits that something else bounds (a child's own deadline, a user at a terminal).
  static Deadline never() { return Deadline(MonoTime::max()); }
  static Deadline at(MonoTime time) { return Deadline(time); }

  bool passed() const;
  /// Not negative; about 292 years for never().
  Duration left() const;
  /// For poll(2) and friends: milliseconds left rounded up, capped at `cap_ms`; -1 is never returned.
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

/// Reads "90s", "20h", "1h30m", "2d", "500ms" and Slurm's "1:30:00" and "2-12:00:00". A bare number is
/// refused. Error text: "'30' has no unit (write 30s, 30m or 30h)" or "'x' is not a duration (as in 90s, 20h
/// or 1:30:00)".
Result<Duration> parse_duration(std::string_view text);
/// Exact and readable back by parse_duration: "20h", "1h30m", "1500ms", "0s".
std::string duration_text(Duration duration);
/// For people: "11 ms", "4.1 s", "2 min 11 s", "1 h 05 min", "3 d 04 h".
std::string rounded_duration(Duration duration);

}  // namespace stoker
