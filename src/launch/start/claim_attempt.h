// Claims the attempt of a run that this process may write. Used for running and submitting jobs and scripts.
#pragma once

#include <string>

#include "launch/start/run.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// The attempt of this process. A submitted one (`request.prepared`) is claimed by creating its first events
/// file, which only one process can do. If the file exists, the job was requeued, and this process gets the
/// next attempt. Invalid when the run is done or still running, or when another process has started an
/// attempt since `request.last_known_attempt`; then this one is removed.
Result<record::Attempt> claim_attempt(const Request& request, const record::RunFolder& folder,
                                      const std::string& scheduler_job, const std::string& yaml);

}  // namespace stoker::launch
