// Ranks in a container: a command as Charliecloud's ch-run takes it, and what the image must have for that.
// Charliecloud needs no root and no daemon, and becomes the command, so signals and exit codes are the
// command's own. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "job/job.h"

namespace stoker::launch {

/// NotFound when there is no such image or no ch-run in `search_path`; Invalid when a folder that the job
/// names could not be seen inside: it is neither below /tmp nor has the image a folder of that name to mount
/// it on.
Status check_container(const job::Job& job, const std::string& search_path);

/// Invalid when the job has a container in which the staged `folder` cannot be seen.
Status check_staged_container(const job::Job& job, const Path& folder);

/// `command` as it runs in the job's container; as it is when there is none.
std::vector<std::string> in_container(const job::Job& job, std::vector<std::string> command);

}  // namespace stoker::launch
