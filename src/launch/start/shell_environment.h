// The environment after `module load` and `conda activate`, read from a helper shell: as in a batch script,
// but once, with clear errors. Used before ranks start and before a job is queued. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "base/process.h"
#include "job/job.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

/// The result.
struct ShellEnvironment {
  Environment variables;
  std::vector<std::string> notes;  ///< "module python/3.10 was replaced by python/3.11"
};

/// `base` after the job's modules and its conda environment; `base` itself if it has none. NotFound when the
/// `module` command, a module or an environment is missing; the message names the key.
Result<ShellEnvironment> load_environment(const job::Environment& wanted, Environment base,
                                          Deadline deadline);

}  // namespace stoker::launch
