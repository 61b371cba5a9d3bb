// What `stoker checkpoint` takes for RUN|DIR.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/runs.h"

namespace stoker::cli {

/// The directory of checkpoints that a person named: a folder that is no run is taken as it is, anything else
/// is a run (id, prefix, folder or "last"), whose job says where its checkpoints are.
Result<Path> find_checkpoints(const RunChoice& choice);

}  // namespace stoker::cli
