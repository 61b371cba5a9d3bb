// The tasks of one job of an array, one after the other, on the node that the job was given. Used by `stoker
// run` on an attempt of an array. Main thread only.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "launch/run.h"
#include "slurm/queue/scheduler.h"

namespace stoker::launch {

/// Runs those tasks of `request.prepared` that this job has to run and that are not done yet; `note` is told
/// what is worth a line in the job's own log. The exit code of the first task that fails, 0 when none does;
/// an error when there is no array or no such job of it.
Result<int> run_tasks(const Request& request, slurm::Scheduler& scheduler,
                      const std::function<void(const std::string&)>& note);

}  // namespace stoker::launch
