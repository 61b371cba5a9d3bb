// Finds shell code in `run` that a job file key replaces. Internal to this folder.
#pragma once

#include "job/job.h"
#include "preflight/notes.h"

namespace stoker::preflight {

/// Whether a different tool fits the job's shell command better.
void check_command(const job::Job& job, Notes& notes);

}  // namespace stoker::preflight
