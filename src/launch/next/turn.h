// A batch job's turn in the life of its run: whether it has anything to do when it begins, and what comes
// next when its attempt has ended. Used by `stoker run` on an attempt's folder. Thread-compatible.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "launch/run.h"
#include "slurm/queue/scheduler.h"

namespace stoker::launch {

/// The run's newest checkpoint that looks whole, without reading all of it: there may be seconds left.
Path newest_by_its_looks(const Request& request, const record::RunFolder& run);

/// What a job finds when it begins.
struct Turn {
  bool goes_on = true;
  std::string why;    ///< one line, when it does not
  int exit_code = 0;  ///< then
};

/// Decides it for a prepared request, and finds the checkpoint to go on from (Request::resume_from). What is
/// done needs nothing; what was given up stays given up, and the rest of a chain is withdrawn.
Result<Turn> take_turn(Request& request, slurm::Scheduler& scheduler, Deadline deadline);

/// What comes after an attempt.
struct Next {
  std::string text;              ///< one line for the log; "" when there is nothing to say
  std::optional<int> exit_code;  ///< of the job, when it is not its attempt's
  bool goes_on = false;          ///< by itself
};

/// Decides it for a prepared request and does it: the next link of a chain, the job started again, or the
/// end, with its reason recorded and the rest of a chain withdrawn.
Next conclude_turn(const Request& request, const RunResult& result, slurm::Scheduler& scheduler,
                   Deadline deadline);

/// Does not return while this job is being preempted: one that ends within the grace time is over for Slurm,
/// which starts only those again that it had to kill. False, at once, when it is not.
bool stay_if_preempted(const std::string& job, slurm::Scheduler& scheduler, Deadline deadline);

}  // namespace stoker::launch
