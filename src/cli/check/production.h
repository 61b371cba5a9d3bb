// `stoker check JOB --production`: a list of thirteen questions. Called by the command's own file.
#pragma once

#include <optional>
#include <string>

#include "base/language/words.h"
#include "cli/output.h"
#include "job/job.h"
#include "job/site/site.h"

namespace stoker::cli {

/// Prints the answers and returns the exit code: 1 when one of them is no.
int check_production(const std::string& name, const job::Job& job, const std::optional<job::Site>& site,
                     const Words& words, Output& out);

}  // namespace stoker::cli
