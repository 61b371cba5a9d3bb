// What `stoker shell` and `stoker jupyter` share: an allocation to work in by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "cli/output.h"
#include "cli/running.h"

namespace stoker::cli {

/// Invalid inside of an allocation, unless nothing is to be started.
Status check_outside(std::string_view command, const JobChoice& choice);

/// What salloc and all in its allocation is started with.
Result<Environment> environment_of(const job::Job& job);

/// Prints the command line in place of starting it.
int show_command(const std::vector<std::string>& words, Output& out);

/// A missing salloc in words that help; any other error as it is.
Status without_salloc(const Status& error, const std::string& job_file);

}  // namespace stoker::cli
