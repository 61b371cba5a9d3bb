// Decides whether a batch job has to run its attempt, and what follows when the attempt has ended. Used by
// `stoker run` on an attempt's folder. Thread-compatible.
#pragma once

#include <optional>
#include <string>

#include "launch/start/run.h"
#include "slurm/queue/scheduler.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

/// The newest checkpoint that appears complete, without reading all of it: only seconds may be left.
Path newest_checkpoint_shallow(const Request& request, const record::RunFolder& run);

/// The decision at the start of a job.
struct StartDecision {
  bool will_continue = true;
  std::string why;    ///< one line, if it does not continue
  int exit_code = 0;  ///< in that case
};

/// Decides for a prepared request, and finds the checkpoint to resume from (Request::resume_from). A done or
/// abandoned run needs no attempt; the rest of its chain is cancelled.
Result<StartDecision> decide_start(Request& request, slurm::Scheduler& scheduler, Deadline deadline);

/// The action after an attempt.
struct NextAction {
  std::string text;              ///< one line for the log; may be ""
  std::optional<int> exit_code;  ///< of the job, if it differs from the attempt's
  bool will_continue = false;    ///< by itself
};

/// Decides and acts for a prepared request: the next link of a chain, a requeue, or the end. For an end,
/// records the reason and cancels the rest of the chain.
NextAction decide_next(const Request& request, const RunResult& result, slurm::Scheduler& scheduler,
                       Deadline deadline);

/// Blocks while this job is being preempted: Slurm requeues only jobs that it had to kill, and not jobs that
/// exit within the grace time. Returns false at once if the job is not being preempted.
bool block_while_preempted(const std::string& job, slurm::Scheduler& scheduler, Deadline deadline);

}  // namespace stoker::launch
