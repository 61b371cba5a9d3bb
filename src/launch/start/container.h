// Ranks in a container: the ch-run command of Charliecloud, and the requirements on the image. Charliecloud
// needs no root and no daemon and replaces itself by the command, so signals and exit codes reach the command
// unchanged. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "job/job.h"
#include "stoker/status.h"

namespace stoker::launch {

/// NotFound when the image, or ch-run in `search_path`, is missing. Invalid when a folder of the job would be
/// invisible inside: it is not below /tmp, and the image has no folder with that name as a mount point.
Status check_container(const job::Job& job, const std::string& search_path);

/// Invalid when the job has a container in which the staged `folder` is invisible.
Status check_staged_container(const job::Job& job, const Path& folder);

/// `command` in the job's container; unchanged without one.
std::vector<std::string> wrap_in_container(const job::Job& job, std::vector<std::string> command);

}  // namespace stoker::launch
