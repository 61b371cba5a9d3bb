// Runs the tasks of one job of an array, one after the other, on the job's node. Used by `stoker run` on an
// attempt of an array. Main thread only.
#pragma once

#include <functional>
#include <string>

#include "launch/start/run.h"
#include "slurm/queue/scheduler.h"
#include "stoker/status.h"

namespace stoker::launch {

/// Runs the unfinished tasks of this job in `request.prepared`. `note` receives lines for the job's log.
/// Returns the exit code of the first task that fails, or 0. Fails when the array or this job of it does not
/// exist.
Result<int> run_tasks(const Request& request, slurm::Scheduler& scheduler,
                      const std::function<void(const std::string&)>& note);

}  // namespace stoker::launch
