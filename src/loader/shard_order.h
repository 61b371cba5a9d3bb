// The order in which a training needs the shards of a dataset. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <vector>

#include "dataset/shard_source.h"
#include "loader/sampler/order.h"

namespace stoker::loader {

/// The shards of a split, ordered by their first sample in the epoch. `order.samples` and `order.shards` are
/// set here. Empty if samples are drawn from all shards at once.
std::vector<std::uint32_t> shards_by_first_use(const dataset::SampleTable& samples, OrderOptions order,
                                               Epoch epoch);

}  // namespace stoker::loader
