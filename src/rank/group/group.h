// Supervises all ranks of one attempt for `stoker run`: starts a `stoker rank` per rank (or one srun for
// all), accepts their connections, streams their output, detects failures and ends all ranks. One thread, one
// poll loop; it changes the process (signal mask, subreaper), so it runs once, in the main thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/process.h"
#include "job/job.h"
#include "rank/plan.h"
#include "rank/verdict.h"
#include "record/run_events.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::rank {

struct GroupOptions {
  Plan plan;
  std::vector<std::string> command;  ///< executed by every rank
  Environment environment;           ///< for the ranks: the contract without the variables of a single rank
  Path working_directory;
  record::Attempt attempt;
  record::AttemptStarted start;    ///< its first event; the supervisor is filled in
  bool has_begun = false;          ///< that event is already written
  bool defers_done_event = false;  ///< the success event is not written: the caller has more to do first
  job::Timeouts timeouts;
  std::optional<double> deadline;  ///< time limit, Unix seconds
  std::string deadline_text;       ///< "time limit 2h (resources.time)"
  Duration notice{0};              ///< lead time of SIGUSR1, "save and stop", before the deadline; 0: never
  Duration sample_every{0};        ///< interval of the samples of each node; 0: not sampled
  Path stoker;                     ///< the executable that starts ranks
  int out_fd = 1;
  int err_fd = 2;
  /// Ends the rest of this Slurm step after its srun was killed; may take seconds.
  std::function<void(const std::string& step)> end_step;
  /// Children that, with their descendants, must not be ended here.
  std::vector<pid_t> excluded_pids;
  /// Work that must not delay the ranks: runs in a separate process, started after them.
  std::function<void()> background_task;
};

/// Runs all ranks to their end and leaves no process behind. Fails when the attempt could not start; a failed
/// rank is an Ending.
Result<Ending> run_group(const GroupOptions& options);

}  // namespace stoker::rank
