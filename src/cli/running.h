// What `run` and `resume` share: starting what was asked for and saying how it ended.
#pragma once

#include "base/process.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "job/job.h"
#include "launch/run.h"

namespace stoker::cli {

/// Runs the request to its end, prints, and returns the exit code; shows the plan only with `dry_run`.
int run_request(launch::Request request, bool dry_run, Output& out);

}  // namespace stoker::cli
