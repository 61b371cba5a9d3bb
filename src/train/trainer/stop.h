// Stop requests: a signal, or an approaching deadline. One per process, created by main.
#pragma once

#include <array>
#include <optional>
#include <signal.h>

#include "stoker/time.h"

namespace stoker::train {

/// The process answers kStackSignal (base/stack_signal.h). While the object exists, SIGTERM, SIGUSR1, SIGINT
/// and SIGHUP set requested(); ignored signals (nohup) stay ignored. Further signals have no effect: Slurm
/// signals every process of a job step and a supervisor forwards signals, so they arrive twice. A second
/// Ctrl-C on this process's terminal ends it at once (exit 130).
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

/// Whether to write the last checkpoint. Thread-compatible.
class StopRule {
 public:
  StopRule(const StopSignals& signals, std::optional<WallTime> deadline)
      : signals_(signals), deadline_(deadline) {}

  /// Record durations of checkpoints and steps.
  void record_step_time(double seconds);
  void record_write_time(double seconds);

  /// True after a signal, or if less than two steps, two writes and kReserve remain before the deadline.
  bool is_due(WallTime now) const;
  /// The reason for a log line: "asked to stop" or "little time left".
  const char* reason() const;

 private:
  const StopSignals& signals_;  // must outlive this
  const std::optional<WallTime> deadline_;
  double longest_step_s_ = 0;
  double longest_write_s_ = 0;
};

/// Reserve for the end of the process.
inline constexpr double kReserve_s = 5;

}  // namespace stoker::train
