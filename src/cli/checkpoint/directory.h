// What `stoker checkpoint` takes for RUN|DIR, and how checkpoints that are not whole are told: by `run` and
// `resume`, too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "cli/output.h"
#include "cli/runs.h"

namespace stoker::cli {

/// The directory of checkpoints that a person named: a folder that is no run is taken as it is, anything else
/// is a run (id, prefix, folder or "last"), whose job says where its checkpoints are.
Result<Path> find_checkpoints(const RunChoice& choice);

/// The step folder that the words name themselves, by its name or its manifest; nothing when they name
/// something else.
std::optional<Path> step_folder_named(const RunChoice& choice);

/// One step: the folder named, or the newest whole one of the directory or run named.
Result<Path> find_step(const RunChoice& choice);

/// Names the checkpoints that are not whole, and why, on standard error.
void note_passed_over(const std::vector<checkpoint::SkippedStep>& steps, Output& out);

}  // namespace stoker::cli
