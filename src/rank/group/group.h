// All ranks of one attempt as `stoker run` sees them: starts a `stoker rank` per rank (or one srun for all),
// lets them in, streams what they print, notices what is wrong with one and ends all. One thread, one poll
// loop; it changes the process (signal mask, subreaper), so it runs once, in the main thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "job/job.h"
#include "rank/plan.h"
#include "rank/verdict.h"
#include "record/run_events.h"
#include "record/run_folder.h"

namespace stoker::rank {

struct GroupOptions {
  Plan plan;
  std::vector<std::string> command;  ///< what every rank executes
  Environment environment;           ///< what the ranks inherit: the contract but for a rank's own part
  Path working_directory;
  record::Attempt attempt;
  record::AttemptStarted start;  ///< its first event; the supervisor is filled in
  bool has_begun = false;        ///< that event was written before
  bool has_more_to_do = false;   ///< that all ranks are done is not written: the caller does once more is
  job::Timeouts timeouts;
  std::optional<double> deadline;  ///< Unix seconds at which the time is over
  std::string deadline_text;       ///< "time 2h is over (resources.time)"
  Duration notice{0};              ///< SIGUSR1, "save and stop", comes so long before the deadline; 0: never
  Duration sample_every{0};        ///< CPU, memory and I/O of the ranks on this machine; 0: not sampled
  Path stoker;                     ///< the executable to start ranks with
  int out_fd = 1;
  int err_fd = 2;
  /// Ends what is left of Slurm's step of that number, when its srun had to be killed; may take seconds.
  std::function<void(const std::string& step)> end_step;
  /// A child of this process that is not ours to end, nor what is below it; -1: there is none.
  pid_t spared = -1;
  /// Work that must not delay the ranks: runs in a process of its own beside them, started after them.
  std::function<void()> beside;
};

/// Runs all ranks to their end: none of their processes is left when it returns. An error when the attempt
/// could not be started at all; a rank's failure is an Ending.
Result<Ending> run_group(const GroupOptions& options);

}  // namespace stoker::rank
