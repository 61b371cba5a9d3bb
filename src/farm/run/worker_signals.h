// The signals that a worker waits for. Used by worker.cc. Belongs to one thread, and to one worker per
// process.
#pragma once

#include <csignal>
#include <optional>

#include "stoker/time.h"

namespace stoker::farm {

/// Blocks SIGCHLD and the signals that end a worker for its lifetime: SIGINT, SIGTERM, SIGHUP and SIGUSR1.
/// Ignored ones stay ignored, as under nohup. Its end discards pending signals: a repeated Ctrl-C must not
/// end the process before it has printed its result.
class WorkerSignals {
 public:
  WorkerSignals();
  ~WorkerSignals();
  WorkerSignals(const WorkerSignals&) = delete;
  WorkerSignals& operator=(const WorkerSignals&) = delete;

  /// The next signal other than SIGCHLD. Returns after `longest`, or as soon as a child has ended.
  std::optional<int> wait(Duration longest);

 private:
  sigset_t set_;
  sigset_t before_;
};

}  // namespace stoker::farm
