// What `run` and `resume` share: starting what was asked for and saying how it ended.
#pragma once

#include "base/process.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "job/job.h"
#include "launch/run.h"

namespace stoker::cli {

/// Where this executable is.
Result<Path> own_program();

/// The words as they were typed, for the run's records.
std::vector<std::string> typed_words(std::string_view command, std::span<const std::string> words);

/// Submits the request, prints, and returns the exit code; shows the batch script only with `dry_run`.
int submit_request(launch::Request request, bool dry_run, Output& out);

/// Runs the request to its end, prints, and returns the exit code; shows the plan only with `dry_run`.
int run_request(launch::Request request, bool dry_run, Output& out);

}  // namespace stoker::cli
