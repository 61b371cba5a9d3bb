// Shared by `submit`, `resume` and `rerun`: submits a request or shows its batch script, prints the result.
#pragma once

#include <chrono>
#include <string>

#include "cli/output.h"
#include "launch/script/user_script.h"
#include "launch/start/run.h"
#include "launch/state/array_file.h"

namespace stoker::cli {

/// Timeout of sbatch, which retries while the controller is busy.
inline constexpr std::chrono::seconds kSubmitTimeout{60};

/// Submits the request, prints, and returns the exit code; with `dry_run` only shows the batch script.
int submit_request(launch::Request request, bool dry_run, Output& out);

/// The same for selected tasks of an array.
int submit_array_request(launch::Request request, const launch::TaskArrayFile& array, bool dry_run,
                         Output& out);

/// The same for a user script.
int submit_script_request(const launch::PlannedScript& plan, bool dry_run, Output& out);
/// The wrapped user script, with placeholders for values not known yet, like the run id.
Result<std::string> preview_user_script(const launch::PlannedScript& plan);

/// The batch script of the request, with placeholders for values not known yet, like the run id.
Result<std::string> preview_batch_script(launch::Request request);

}  // namespace stoker::cli
