// The environment of a run's ranks: the user's environment, the job's variables, and the run's variables of
// docs/environment.md. Values; no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "job/job.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::launch {

/// Invalid or NotFound when a folder of the job is missing: working directory, virtual environment, datasets.
Status check_paths(const job::Job& job);

/// Path of the virtual environment in the staged folder if `stage.copy` copies it; else empty.
std::string staged_venv(const job::Job& job);

/// Whether `venv` is a requirements file. Every node then creates a virtual environment from it.
bool has_requirements_file(const job::Environment& environment);

/// Prefixes `command` so that it runs in that virtual environment; unchanged without one.
std::vector<std::string> wrap_in_node_venv(const job::Environment& environment, const Path& stoker,
                                           std::vector<std::string> command);

/// `base` without the rank variables of an outer run, with the job's variables and its virtual environment.
Environment inherited_environment(const job::Job& job, Environment base);

/// Value of rank::kMetricsVariable for the job's commands.
std::string metrics_from(const job::Job& job);

/// The values of the run's variables.
struct RunContext {
  const job::Job& job;
  const record::RunFolder& folder;
  const record::Attempt& attempt;
  Path checkpoints;
  Path resume;  ///< empty: start from the beginning
  std::optional<double> deadline;
};
/// `base` with STOKER_RUN_ID, STOKER_RUN_DIR, STOKER_ATTEMPT_DIR, STOKER_JOB, STOKER_CHECKPOINT_DIR,
/// STOKER_RESUME, STOKER_DEADLINE and STOKER_DATA_<NAME>.
Environment run_environment(Environment base, const RunContext& part);

}  // namespace stoker::launch
