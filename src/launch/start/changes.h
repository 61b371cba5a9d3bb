// The settings that a resumed run must not change: its checkpoints, sample order or folders depend on them.
// Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "job/job.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::launch {

/// Invalid, with the command that starts a new run, when `after` differs from the last attempt's job `before`
/// in a fixed setting: the model, the seed, the checkpoint folder.
Status check_changes(const record::RunFolder& run, const job::Job& before, const job::Job& after);

/// Invalid when a dataset has another version than in the run's capsule.
Status check_versions(const record::RunFolder& run, const job::Job& job);

/// Describes how the next attempt differs from the last one: settings with both values and their origin,
/// number of ranks, commit. Excludes the changes that check_changes() and check_versions() refuse.
std::vector<std::string> describe_changes(const record::RunFolder& run, const job::Job& before,
                                          const job::Job& after);

/// A value in the run's job file that was changed since the run started.
struct JobFileChange {
  std::string text;     ///< "params.lr is 0.5 in job.yaml now; the run keeps 0.1"
  std::string setting;  ///< "train.epochs=5": the --set option that applies it; "" where resume refuses it
};
/// The values of the job file that differ from the start of `run` and from `taken`, the job in use. Empty if
/// the file is missing.
std::vector<JobFileChange> job_file_changes(const record::RunFolder& run, const job::Job& taken);

/// The same for a resumed run, as lines for users.
std::vector<std::string> describe_job_file_changes(const record::RunFolder& run, const job::Job& taken);

/// Invalid for `settings` of params. The run's command or training already contains their values, so a new
/// value would have no effect. The cure sets the command instead.
Status check_params(const record::RunFolder& run, const job::Job& job,
                    const std::vector<std::string>& settings);

}  // namespace stoker::launch
