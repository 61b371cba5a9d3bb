// Shared by `stoker shell` and `stoker jupyter`: an interactive allocation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "cli/output.h"
#include "cli/run_request.h"

namespace stoker::cli {

/// Invalid inside an allocation, except for a dry run.
Status check_not_in_allocation(std::string_view command, const JobChoice& choice);

/// The environment of salloc and its allocation.
Result<Environment> load_interactive_environment(const job::Job& job);

/// Prints the command line instead of starting it.
int show_command(const std::vector<std::string>& words, Output& out);

/// Turns a missing salloc into a helpful error; returns other errors unchanged.
Status explain_missing_salloc(const Status& error, const std::string& job_file);

}  // namespace stoker::cli
