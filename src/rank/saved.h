// Whether a command that left with 75 has left a checkpoint, too: whatever is in the folder where the run's
// checkpoints belong, whoever wrote it and in whatever form. Used where ranks and tasks of arrays have ended.
// Thread-safe: no state.
#pragma once

#include "base/process.h"

namespace stoker::rank {

/// True also where `environment` has no STOKER_CHECKPOINT_DIR, or it cannot be read: then nobody can tell.
bool has_saved(const Environment& environment);

}  // namespace stoker::rank
