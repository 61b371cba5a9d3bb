// Signals as a pollable descriptor. They stay blocked for the whole process; children start with none blocked
// (base/process.h). Belongs to the main thread.
#pragma once

#include <initializer_list>
#include <optional>

#include "base/file.h"
#include "base/process.h"
#include "stoker/status.h"

namespace stoker::rank {

class SignalFd {
 public:
  /// Ignored signals stay ignored (nohup) and never arrive.
  static Result<SignalFd> open(std::initializer_list<int> signals);
  int fd() const { return fd_.get(); }
  /// The next pending signal, if any.
  std::optional<int> next_signal();

 private:
  explicit SignalFd(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

/// Whether users and schedulers send it to end a program: SIGTERM, SIGINT, SIGHUP, SIGQUIT.
bool is_termination_signal(int signal);

/// Slurm signals all processes of a job at once: a failed child may have died of a signal that has not
/// reached this process yet. Waits a moment for it; true if `signal_fd` is readable.
bool is_signal_pending(int signal_fd, const Exit& exit);

}  // namespace stoker::rank
