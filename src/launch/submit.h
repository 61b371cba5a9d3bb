// From a job to a job in the queue: the run folder, a prepared attempt with its batch script, one call of the
// scheduler. Used by `stoker submit`, and by `stoker resume` for runs that live in the queue.
// Thread-compatible.
#pragma once

#include <string>

#include "base/status.h"
#include "base/time.h"
#include "launch/run.h"
#include "record/run_folder.h"
#include "slurm/queue/scheduler.h"
#include "slurm/script/batch_script.h"

namespace stoker::launch {

/// An attempt in the queue.
struct Submission {
  record::RunFolder folder;
  record::Attempt attempt;
  std::string scheduler_job;
};

/// Refuses what can be refused without a scheduler: folders that are not there, a missing stoker-train,
/// values that no batch script can hold.
Status check_submission(const Request& request);

/// The batch script of an attempt of `request`: `attempt` is where its folder is or will be.
Result<std::string> batch_script(const Request& request, const record::Attempt& attempt,
                                 const std::string& run_id);

/// Makes the run (or the next attempt of `request.resumed`) and submits it. An error after the run folder was
/// made is recorded in it. After Timeout the job may be in the queue all the same: look_at finds it.
Result<Submission> submit(const Request& request, slurm::Scheduler& scheduler, Deadline deadline);

/// Whether the run's last attempt was submitted to a queue.
bool was_submitted(const record::RunFolder& folder);

/// The request that a batch script's `stoker run <attempt folder>` means.
Result<Request> prepared_request(const Path& attempt_folder);

/// `environment` for a scheduler's commands, without variables that would win over what the job file says.
Environment scheduler_environment(const job::Job& job, Environment environment);

}  // namespace stoker::launch
