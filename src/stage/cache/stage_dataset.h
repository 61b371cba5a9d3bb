// Copies a dataset's shards into a node's cache, and makes a folder with the whole dataset for its readers: a
// shard that is not in the cache is a link to the source. Used by `stoker cache` and at the start of a job.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dataset/shard_source.h"
#include "stage/cache/dataset_folder.h"
#include "stage/cache/eviction.h"
#include "stage/cache/shard_copy.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::stage {

struct CacheRequest {
  Path source;                      ///< the dataset's folder
  std::vector<std::string> splits;  ///< whose shards are copied; empty: all
  CacheLimits limits;
  HitCheck check = HitCheck::sampled;
  int threads = 4;  ///< that copy and compare shards
  /// Positions of the shards among the requested ones, first needed first; shards that are not named follow
  /// in their order.
  std::vector<std::uint32_t> order = {};
  /// Called once, from any thread, when readers of the folder find the first shards of `order` there: they
  /// may start while others are copied. Not called if staging fails before.
  std::function<void(const Path& folder)> on_usable = {};
};

/// A shard that is read from the source.
struct LeftAtSource {
  std::string shard;
  std::string reason;
};

/// What was done.
struct CacheReport {
  Path folder;  ///< the dataset, for its readers
  std::string version;
  std::uint64_t shards = 0;  ///< that were requested
  std::uint64_t hits = 0;    ///< that were in the cache
  std::uint64_t hit_bytes = 0;
  std::uint64_t copied = 0;
  std::uint64_t copied_bytes = 0;
  std::uint64_t received_bytes = 0;  ///< of them from other nodes, not from the source
  std::uint64_t shared_bytes = 0;    ///< of them from caches of other users of this node
  std::uint64_t replaced = 0;        ///< copied, because the cached one was damaged
  Evicted evicted;
  std::vector<LeftAtSource> left;  ///< in the order of the dataset
  double seconds = 0;
};

/// Stages the dataset. A shard for which there is no room, or that the disk refuses, is left at the source,
/// with the reason. Corrupt if a shard at the source is damaged, NoSpace if there is not even room for the
/// index, Cancelled after a stop: what is complete then stays. Several processes may stage the same dataset:
/// each shard is copied once. The folder stays unchanged while a living process has a lease of the dataset
/// (begin_lease()), which must begin before this call.
Result<CacheReport> stage_dataset(const CacheFolder& cache, const dataset::OpenDataset& dataset,
                                  const CacheRequest& request, Progress& progress);

}  // namespace stoker::stage
