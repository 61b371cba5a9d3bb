// What the ranks of a run inherit: the user's environment, the job's variables, the run's part of the
// contract of docs/environment.md. Values; no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "job/job.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// Invalid or NotFound when a folder that the job names is not there: working directory, virtual environment,
/// datasets.
Status check_places(const job::Job& job);

/// Whether `venv` is a requirements file, of which every node makes a virtual environment.
bool makes_venv(const job::Environment& environment);

/// `command` as it runs in such a one; as it is when there is none.
std::vector<std::string> in_made_venv(const job::Environment& environment, const Path& stoker,
                                      std::vector<std::string> command);

/// `base` without a rank's variables of an outer run, with the job's variables and its virtual environment.
Environment inherited_environment(const job::Job& job, Environment base);

/// The run's part.
struct RunPart {
  const job::Job& job;
  const record::RunFolder& folder;
  const record::Attempt& attempt;
  Path checkpoints;
  Path resume;  ///< empty: from the start
  std::optional<double> deadline;
};
/// `base` with STOKER_RUN_ID, STOKER_RUN_DIR, STOKER_ATTEMPT_DIR, STOKER_JOB, STOKER_CHECKPOINT_DIR,
/// STOKER_RESUME, STOKER_DEADLINE and STOKER_DATA_<NAME>.
Environment run_environment(Environment base, const RunPart& part);

}  // namespace stoker::launch
