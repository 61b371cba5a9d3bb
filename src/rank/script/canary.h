// Distinguishes a signal for this process only from a signal for all processes of the job. Slurm sends both
// in the same way, but only the first kind must be forwarded to a child: the child already has the other
// kind. Main thread only.
#pragma once

#include <array>
#include <csignal>
#include <sys/types.h>

#include "base/file.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::rank {

/// A process of the job that only reports the signals it receives.
class Canary {
 public:
  /// Starts it in a separate process group. REQUIRES: `signals` are blocked, no other thread runs.
  static Result<Canary> start(const sigset_t& signals);
  Canary(Canary&&) = default;
  Canary& operator=(Canary&&) = delete;
  ~Canary();

  /// Whether it received `signal`, too, within the last second or until the deadline.
  bool received(int signal, Deadline deadline);

 private:
  Canary(pid_t pid, Fd reports) : pid_(pid), reports_(std::move(reports)) {}
  void listen(Deadline deadline);

  pid_t pid_ = -1;
  Fd reports_;
  std::array<MonoTime, 65> seen_{};  // by signal number; long ago: never
};

}  // namespace stoker::rank
