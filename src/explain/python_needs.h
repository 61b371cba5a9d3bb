// What a job's Python script needs and whether it is there, found out before the job waits in a queue: its
// imports are looked for in the environment that it will have, its requirements in the wheelhouse they will
// come from. No network, and nothing of the script is run. Used by `stoker check` and `stoker submit`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/language/words.h"
#include "base/process.h"
#include "base/status.h"
#include "base/time.h"
#include "job/job.h"

namespace stoker::explain {

/// The script that `command` gives to a Python ("train.py" of "python -u train.py"); "" when it gives none.
std::string script_of(const std::vector<std::string>& command);

/// What of it is missing: `no-import` for a module that nothing has, `no-wheel` for a requirement without a
/// wheel. `environment` is that of the ranks, with modules loaded. Nothing for a job without a Python script,
/// and when no Python can be asked.
std::vector<Finding> missing_needs(const job::Job& job, const Environment& environment, Deadline deadline,
                                   const Words& words = Words());

}  // namespace stoker::explain
