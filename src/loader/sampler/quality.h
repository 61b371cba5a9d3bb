// Measures how well an order shuffles, to compare windows of shards with a full shuffle. Used by `data
// bench`, tests and documentation. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <span>

#include "loader/sampler/order.h"

namespace stoker::loader {

struct ShuffleQuality {
  /// Mean distance between a sample's position in the order and in the dataset, relative to a full shuffle
  /// (1/3 of the length): 0 is unshuffled, 1 as good as full.
  double distance = 0;
  /// Different shards in a batch, relative to a full shuffle.
  double shards_per_batch = 0;
  /// Shards with samples in a window of 1024 positions: the shards that a reader has open.
  double open_shards = 0;
};

/// Measures the whole order. `shards` are the samples in each shard or chunk; `batch` is over all ranks.
ShuffleQuality measure_shuffle(const EpochOrder& order, std::span<const std::uint64_t> shards,
                               std::uint64_t batch);

}  // namespace stoker::loader
