// Whether a running job uses its GPUs, from the samples of its nodes. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <optional>

#include "record/run_folder.h"

namespace stoker::observe {

struct IdleGpus {
  std::size_t gpus = 0;
  double seconds = 0;  ///< how long none of them was used, as far as the samples go back
};

/// Nothing if a GPU of any node is used (5 % or more in a sample of one second), if a GPU's use is not known
/// (as on a MIG device), if a node was not sampled in the last 90 s, or without GPUs. `now`: Unix seconds.
/// Looks back for at least an hour: reads up to 8 MiB for each node.
std::optional<IdleGpus> idle_gpus(const record::Attempt& attempt, double now);

}  // namespace stoker::observe
