// Checks a job's modules, wheels and imports before it is queued. Used by `check` and `submit`.
#pragma once

#include <vector>

#include "base/finding.h"
#include "base/language/translator.h"
#include "job/job.h"

namespace stoker::cli {

/// Finds missing modules, wheels and imports of the job. Loads the modules in a separate shell.
std::vector<Finding> find_missing_dependencies(const job::Job& job);

}  // namespace stoker::cli
