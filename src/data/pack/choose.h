// Which kind of file shards become, and why. Used by plan_pack(). Thread-safe: no state.
#pragma once

#include <vector>

#include "base/status.h"
#include "data/pack/pack.h"

namespace stoker::data {

/// Sets the plan's container, why, and columns, from what the samples of its splits take. Invalid for files
/// that cannot be named in it. REQUIRES: source and options are set.
Status choose_container(const std::vector<SampleBytes>& splits, PackPlan& plan);

/// Invalid for label members in shards of a kind that has none.
Status check_label_kind(const PackOptions& options);

}  // namespace stoker::data
