// How well an order mixes: what a shuffle within windows of shards gives away against a full one. Used by
// `data bench`, by tests and by documentation. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <span>

#include "data/order/order.h"

namespace stoker::data {

struct ShuffleQuality {
  /// Mean distance between a sample's place in the order and in the dataset, over that of a full shuffle
  /// (1/3 of the length): 0 is unshuffled, 1 as good as full.
  double distance = 0;
  /// Different shards in a batch, over that of a full shuffle.
  double shards_per_batch = 0;
  /// Shards whose samples are wanted within a stretch of 1024 positions: how many a reader has open.
  double open_shards = 0;
};

/// Measures all of an order. `shards` are the samples in each, or those of chunks; `batch` is over all ranks.
ShuffleQuality measure_shuffle(const EpochOrder& order, std::span<const std::uint64_t> shards,
                               std::uint64_t batch);

}  // namespace stoker::data
