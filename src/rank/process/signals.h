// Signals as something to poll for: they are blocked for the whole process from then on; children start with
// none blocked (base/process.h). Belongs to the main thread.
#pragma once

#include <initializer_list>
#include <optional>

#include "base/file.h"
#include "base/process.h"
#include "base/status.h"

namespace stoker::rank {

class SignalFd {
 public:
  /// Ignored signals stay ignored (nohup), so they never come.
  static Result<SignalFd> open(std::initializer_list<int> signals);
  int fd() const { return fd_.get(); }
  /// The next one that has come, if any.
  std::optional<int> take();

 private:
  explicit SignalFd(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

/// Whether people and schedulers send it to end a program: SIGTERM, SIGINT, SIGHUP, SIGQUIT.
bool asks_for_the_end(int signal);

/// Slurm signals all processes of a job at once: a child that ended badly may have died of what we are about
/// to hear, or of what its own command heard. Waits a moment for that; true if `signal_fd` has something.
bool is_signal_on_its_way(int signal_fd, const Exit& exit);

}  // namespace stoker::rank
