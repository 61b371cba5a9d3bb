// A process between Slurm and a rank. Where Slurm finds a task's processes only by their ancestors (no
// cgroups), it would miss the descendants of a killed `stoker rank`. On a single machine, `stoker run` is
// that ancestor. Changes the process: call it first, before there are threads.
#pragma once

#include <optional>

#include "stoker/status.h"

namespace stoker::rank {

/// Forks. Returns nothing in the child, which continues as the rank. Returns the rank's exit code in the
/// parent, after the rank and all its descendants have ended.
Result<std::optional<int>> guard_rank();

}  // namespace stoker::rank
