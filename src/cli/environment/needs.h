// What a job needs beside its data, as far as it can be known before it waits in a queue. Used by `check` and
// `submit`.
#pragma once

#include <vector>

#include "base/finding.h"
#include "base/language/words.h"
#include "cli/output.h"
#include "job/job.h"

namespace stoker::cli {

/// What of the job's modules, wheels and imports is not there. Loads the modules in a shell of their own.
std::vector<Finding> find_missing_needs(const job::Job& job, const Words& words = Words());

/// The same, told: what would lose the job as an error, the rest in notes.
Status check_needs(const job::Job& job, Output& out);

}  // namespace stoker::cli
