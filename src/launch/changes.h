// What a run that goes on may not change: what its checkpoints, its order of samples or its place depend on.
// Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "job/job.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// Invalid, with the command that begins another run, when `after` differs from the last attempt's job
/// `before` in something that a run keeps: the model, the seed, where its checkpoints are.
Status check_changes(const record::RunFolder& run, const job::Job& before, const job::Job& after);

/// Invalid when a dataset of the job is another version than the run began with, as its capsule says.
Status check_versions(const record::RunFolder& run, const job::Job& job);

/// How the attempt that comes is another one than the last, in lines for people: settings with both values
/// and who changed them, the number of ranks, the commit. What check_changes() and check_versions() refuse is
/// not among them.
std::vector<std::string> told_changes(const record::RunFolder& run, const job::Job& before,
                                      const job::Job& after);

/// A value that the job file which was typed for a run has otherwise by now.
struct JobFileChange {
  std::string text;     ///< "params.lr is 0.5 in job.yaml now; the run's own is taken: 0.1"
  std::string setting;  ///< "train.epochs=5": what `resume --set` changes it with; "" where that is refused
};
/// What that file has otherwise than when `run` began, and than `taken`, the job that counts. Nothing where
/// the file is no longer there.
std::vector<JobFileChange> job_file_changes(const record::RunFolder& run, const job::Job& taken);

/// The same of a run that goes on, in lines for people.
std::vector<std::string> told_job_file(const record::RunFolder& run, const job::Job& taken);

/// Invalid for `settings` of params: a run's command, or training, was made with the values they had, so that
/// another value would change nothing. The cure sets what was made of them.
Status check_params(const record::RunFolder& run, const job::Job& job,
                    const std::vector<std::string>& settings);

}  // namespace stoker::launch
