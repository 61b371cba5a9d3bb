// Whether a resumed run of the user's own script would continue: the script must save to Stoker's folder and
// load from it. Internal to this folder.
#pragma once

#include "job/job.h"
#include "preflight/notes.h"

namespace stoker::preflight {

/// Reports a Python script that saves checkpoints and does not use STOKER_CHECKPOINT_DIR.
void check_saving(const job::Job& job, Notes& notes);

}  // namespace stoker::preflight
