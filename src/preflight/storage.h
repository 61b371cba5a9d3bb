// Checks the free space for records and checkpoints. Internal to this folder.
#pragma once

#include <cstdint>
#include <optional>

#include "job/job.h"
#include "preflight/notes.h"
#include "record/run_folder.h"
#include "stoker/time.h"

namespace stoker::preflight {

/// Free space for records and expected checkpoints; `classes` of the training data, 0 if unknown.
void check_storage(const job::Job& job, const std::optional<record::RunFolder>& last, std::uint64_t classes,
                   Deadline deadline, Notes& notes);

}  // namespace stoker::preflight
