// Tells a signal for this process alone from one for all processes of the job. Slurm sends both in the same
// way, and only the first kind has to be passed on to a child: the other one it has got already. Main thread
// only.
#pragma once

#include <array>
#include <csignal>
#include <sys/types.h>

#include "base/file.h"
#include "base/status.h"
#include "base/time.h"

namespace stoker::rank {

/// A process of the job that does nothing but report the signals it gets.
class Canary {
 public:
  /// Starts it, in a process group of its own. REQUIRES: `signals` are blocked, no other thread runs.
  static Result<Canary> start(const sigset_t& signals);
  Canary(Canary&&) = default;
  Canary& operator=(Canary&&) = delete;
  ~Canary();

  /// Whether it got `signal`, too, within the last second or until the deadline.
  bool got(int signal, Deadline deadline);

 private:
  Canary(pid_t pid, Fd reports) : pid_(pid), reports_(std::move(reports)) {}
  void listen(Deadline deadline);

  pid_t pid_ = -1;
  Fd reports_;
  std::array<MonoTime, 65> seen_{};  // by number; long ago: never
};

}  // namespace stoker::rank
