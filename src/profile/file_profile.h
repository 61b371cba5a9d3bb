// The profile of files that no run of Stoker recorded: traces of torch.profiler, records of steps, logs with
// NCCL's lines, alone or in folders. Used by `stoker profile`. Thread-safe: no state.
#pragma once

#include <span>
#include <string>

#include "profile/profile.h"
#include "profile/records.h"
#include "stoker/status.h"

namespace stoker::profile {

/// One profile of all files. Other files in folders are ignored. NotFound or Invalid if a
/// named file is missing or is none of these, or if the files are traces and records of steps, which do not
/// add up.
Result<Profile> profile_files(std::span<const std::string> paths, const StepSelection& selection);

}  // namespace stoker::profile
