// Checks the dependencies of a job's Python script before it is queued: imports against its environment,
// requirements against the wheelhouse. No network; the script is not executed. Used by `stoker check` and
// `stoker submit`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/language/message.h"
#include "base/process.h"
#include "job/job.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::preflight {

/// The script in a Python command ("train.py" of "python -u train.py"); "" without one.
std::string python_script(const std::vector<std::string>& command);

/// Whether every node creates the virtual environment at its start, from a requirements file.
bool creates_venv(const job::Environment& environment);

/// Missing dependencies: `no-import` for a missing module, `no-wheel` for a requirement without a wheel. A
/// missing module loses the job if the script imports it in any case and the interpreter is known.
/// `environment` is the environment of the ranks, with modules loaded. Empty for a job without a Python
/// script or without a Python interpreter.
std::vector<Finding> check_python_dependencies(const job::Job& job, const Environment& environment,
                                               Deadline deadline);

}  // namespace stoker::preflight
