// Checks a job's modules, wheels and imports before it is queued. Used by `check` and `submit`.
#pragma once

#include <vector>

#include "base/finding.h"
#include "base/language/translator.h"
#include "job/job.h"
#include "launch/start/shell_environment.h"

namespace stoker::cli {

/// Finds missing modules, wheels and imports of the job. `loaded`: of launch::load_environment() for it.
std::vector<Finding> find_missing_dependencies(const job::Job& job, Result<launch::ShellEnvironment> loaded);

}  // namespace stoker::cli
