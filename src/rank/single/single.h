// Runs a single process as the whole world of a run: a task of an array. There is no supervisor of a rank, no
// srun and no socket, so that thousands of short tasks cost little. It changes the process (signal mask,
// subreaper): main thread only; may be called again after it has returned.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/process.h"
#include "record/run_events.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::rank {

struct SingleOptions {
  std::vector<std::string> command;
  Environment environment;  ///< inherited; RANK, WORLD_SIZE and related variables are added
  Path directory;
  Path log;                        ///< its output is appended
  int cpus = 0;                    ///< 0: all cores of this process
  std::optional<double> deadline;  ///< time limit, Unix seconds
  std::string deadline_text;
  Duration notice{0};        ///< lead time of SIGUSR1, "save and stop", before the deadline; 0: never
  Duration grace{0};         ///< between SIGTERM and SIGKILL
  std::string metrics_from;  ///< as in kMetricsVariable: collects metrics from its output and its trackers
  Path attempt;              ///< receives these metrics
  int number = 0;            ///< of the task, in the names of the files of metrics
  pid_t helper = 0;          ///< a child that is no part of the task: the caller ends it; 0: none
  std::function<void(pid_t)> started;
};

struct SingleEnding {
  record::Outcome outcome = record::Outcome::done;
  int exit_code = 0;
  std::string cause;       ///< one line; "" on success
  int interrupted_by = 0;  ///< the signal that started the end; 0: none
};

/// Runs it to its end and leaves no process behind. Fails when it could not start. SIGINT, SIGTERM and SIGHUP
/// end it. Forwards SIGUSR1 once, if the process handles it, and SIGUSR2 every time.
Result<SingleEnding> run_single(const SingleOptions& options);

}  // namespace stoker::rank
