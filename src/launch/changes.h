// What a run that goes on may not change: what its checkpoints, its order of samples or its place depend on.
// Thread-safe: no state.
#pragma once

#include "base/status.h"
#include "job/job.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// Invalid, with the command that begins another run, when `after` differs from the last attempt's job
/// `before` in something that a run keeps: the model, the seed, where its checkpoints are.
Status check_changes(const record::RunFolder& run, const job::Job& before, const job::Job& after);

/// Invalid when a dataset of the job is another version than the run began with, as its capsule says.
Status check_versions(const record::RunFolder& run, const job::Job& job);

}  // namespace stoker::launch
