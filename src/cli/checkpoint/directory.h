// RUN|DIR arguments of `stoker checkpoint`, and notes about skipped checkpoints. Also used by `run` and
// `resume`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/runs.h"
#include "stoker/checkpoint.h"
#include "stoker/status.h"

namespace stoker::cli {

/// Resolves a checkpoint directory: a folder that is not a run, or a run (id, prefix, folder or "last") whose
/// job names the directory.
Result<Path> find_checkpoint_directory(const RunChoice& choice);

/// The step folder, if the argument names one by its name or its manifest.
std::optional<Path> explicit_step_folder(const RunChoice& choice);

/// Resolves a step: a step folder, or the newest intact step of a directory or run.
Result<Path> find_step(const RunChoice& choice);

/// Prints the skipped checkpoints with the reasons on standard error.
void note_skipped_steps(const std::vector<checkpoint::SkippedStep>& steps, Output& out);

}  // namespace stoker::cli
