// One process as the whole world of a run: a task of an array. No supervisor of a rank, no srun and no socket
// between it and us, so that thousands of short ones cost little. It changes the process (signal mask,
// subreaper): main thread only; may be called again when it has returned.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "base/time.h"
#include "record/run_events.h"

namespace stoker::rank {

struct SingleOptions {
  std::vector<std::string> command;
  Environment environment;  ///< what it inherits; RANK, WORLD_SIZE and the like are added
  Path directory;
  Path log;                        ///< all it prints is added there
  int cpus = 0;                    ///< 0: those that this process may use
  std::optional<double> deadline;  ///< Unix seconds at which its time is over
  std::string deadline_text;
  Duration notice{0};  ///< SIGUSR1, "save and stop", comes so long before the deadline; 0: never
  Duration grace{0};   ///< between SIGTERM and SIGKILL
  std::function<void(pid_t)> started;
};

struct SingleEnding {
  record::Outcome outcome = record::Outcome::done;
  int exit_code = 0;
  std::string cause;       ///< one line; "" when all is done
  int interrupted_by = 0;  ///< the signal with which the end began; 0: none
};

/// Runs it to its end: nothing of what it started is left when it returns. An error when it could not be
/// started. SIGINT, SIGTERM and SIGHUP end it; SIGUSR1 is passed on, once, if it has a handler for it,
/// SIGUSR2 as often as it comes.
Result<SingleEnding> run_single(const SingleOptions& options);

}  // namespace stoker::rank
