// What `stoker checkpoint` takes for RUN|DIR.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
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

}  // namespace stoker::cli
