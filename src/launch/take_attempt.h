// Which attempt of a run a process that was started for it may write. Used by what runs jobs and
// scripts, and by what submits them.
#pragma once

#include <string>

#include "launch/run.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// The attempt that this process runs. A submitted one (`request.prepared`) is claimed by making its first
/// events file, which one of two can do; when that is there already, the scheduler has started the job again
/// and the next attempt is ours. Invalid when the run is done or still running, or when somebody else
/// has begun an attempt since `request.last_seen`: then ours is gone again.
Result<record::Attempt> take_attempt(const Request& request, const record::RunFolder& folder,
                                     const std::string& scheduler_job, const std::string& yaml);

}  // namespace stoker::launch
