// A process between Slurm and a rank: where Slurm finds a task's processes by their ancestors alone (no
// cgroups), nobody would find what a killed `stoker rank` leaves behind. On a machine of one's own `stoker
// run` is that ancestor. Changes the process: call it first, before there are threads.
#pragma once

#include <optional>

#include "base/status.h"

namespace stoker::rank {

/// Splits this process in two. Nothing in the new one, which goes on as the rank; in the old one, once the
/// rank is gone and everything that it left below it is ended, the exit code to end with: the rank's own.
Result<std::optional<int>> guard_rank();

}  // namespace stoker::rank
