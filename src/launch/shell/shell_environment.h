// The environment that `module load` and `conda activate` make, found out by a shell that does so: as in a
// batch script, but once, with what went wrong told. Used before ranks start and before a job is queued.
// Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "base/time.h"
#include "job/job.h"

namespace stoker::launch {

/// What came out.
struct ShellEnvironment {
  Environment variables;
  std::vector<std::string> notes;  ///< "module python/3.10 was replaced by python/3.11"
};

/// `base` after the job's modules and its conda environment; `base` itself when it has none. NotFound when
/// there is no `module` command, or no such module or environment; its text names the key.
Result<ShellEnvironment> load_environment(const job::Environment& wanted, Environment base,
                                          Deadline deadline);

}  // namespace stoker::launch
