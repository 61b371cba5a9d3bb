// Requests to end early: a signal, or the deadline coming near. One per process, made by main.
#pragma once

#include <array>
#include <optional>
#include <signal.h>

#include "base/time.h"

namespace stoker::torch {

/// While one lives, SIGTERM, SIGUSR1, SIGINT and SIGHUP are requests that requested() tells of; those that
/// are ignored (nohup) stay so. More of them change nothing: Slurm signals every process of a step, and a
/// supervisor passes on what it gets, so they come twice. But Ctrl-C pressed again at this process's own
/// terminal ends it at once (exit 130).
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Any thread.
  bool requested() const;

 private:
  std::array<struct sigaction, 4> before_;
};

/// Whether it is time to write the last checkpoint. Thread-compatible.
class StopRule {
 public:
  StopRule(const StopSignals& signals, std::optional<WallTime> deadline)
      : signals_(signals), deadline_(deadline) {}

  /// What a checkpoint and a step take, as far as they have been seen.
  void saw_step(double seconds);
  void saw_write(double seconds);

  /// True after a signal, and when less than two steps, two writes and kReserve are left before the deadline.
  bool is_due(WallTime now) const;
  /// Why, for people: "asked to stop" or "little time left".
  const char* reason() const;

 private:
  const StopSignals& signals_;  // must outlive this
  const std::optional<WallTime> deadline_;
  double longest_step_s_ = 0;
  double longest_write_s_ = 0;
};

/// Time left over for the end of the process itself.
inline constexpr double kReserve_s = 5;

}  // namespace stoker::torch
