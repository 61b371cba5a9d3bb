// `stoker check JOB --production`: a checklist of thirteen questions. Called by check.cc.
#pragma once

#include <optional>
#include <string>

#include "base/language/translator.h"
#include "cli/output.h"
#include "job/job.h"
#include "job/site/site.h"

namespace stoker::cli {

/// Prints the answers and returns the exit code: 1 if one of them is no.
int check_production(const std::string& name, const job::Job& job, const std::optional<job::Site>& site,
                     const Translator& words, Output& out);

}  // namespace stoker::cli
