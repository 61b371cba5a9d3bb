// Finds shell code in `run` that a job file key replaces, and launchers in it that start the wrong ranks.
// Internal to this folder.
#pragma once

#include "job/job.h"
#include "preflight/notes.h"

namespace stoker::preflight {

/// Whether a different tool fits the job's shell command better.
void check_command(const job::Job& job, Notes& notes);
/// Whether torchrun, srun and other launchers in `run`, which starts on every rank, start the ranks of the
/// job.
void check_launchers(const job::Job& job, Notes& notes);

}  // namespace stoker::preflight
