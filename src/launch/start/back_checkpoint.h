// Checkpoints among the results that were copied back from node-local disks. Used to resume. Thread-safe: no
// state.
#pragma once

#include <optional>

#include "job/job.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// The newest complete checkpoint in a folder `checkpoints` of `stage.back`, of the last attempt that has
/// one. Of several nodes the first one counts.
std::optional<Path> find_back_checkpoint(const job::Job& job, const record::RunFolder& folder);

}  // namespace stoker::launch
