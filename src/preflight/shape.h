// Whether an array is the right form for its tasks, or a farm, a search, or fewer and longer jobs. Internal
// to this folder.
#pragma once

#include "job/job.h"
#include "preflight/notes.h"

namespace stoker::preflight {

void check_shape(const job::Job& job, Notes& notes);

}  // namespace stoker::preflight
