// Whether a command that exited with 75 left a checkpoint: any entry in the run's checkpoint folder, from any
// program. Used after ranks and tasks of arrays have ended. Thread-safe: no state.
#pragma once

#include "base/process.h"

namespace stoker::rank {

/// True also when `environment` has no STOKER_CHECKPOINT_DIR, or it is unreadable: then it is unknown.
bool has_any_checkpoint(const Environment& environment);

}  // namespace stoker::rank
