// Chooses the format of the shards. Used by plan_pack(). Thread-safe: no state.
#pragma once

#include <vector>

#include "pack/pack.h"
#include "stoker/status.h"

namespace stoker::pack {

/// Sets container, why_container and columns of the plan from the sample sizes of its splits. Invalid if the
/// format cannot store a file name. REQUIRES: source and options are set.
Status choose_container(const std::vector<SampleBytes>& splits, PackPlan& plan);

/// Invalid for label members in a format without them.
Status check_label_kind(const PackOptions& options);

}  // namespace stoker::pack
