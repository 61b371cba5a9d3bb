// Removes shards of the datasets that were used longest ago. Never removes a shard of a dataset in use, or
// anything that is not a shard of the cache. Thread-safe: the folder is the only state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stage/cache/cache_folder.h"
#include "stoker/bytes.h"
#include "stoker/status.h"

namespace stoker::stage {

/// Limits of a cache.
struct CacheLimits {
  ByteCount quota;                   ///< of all shards together; 0: no limit but the disk
  ByteCount reserve{1'000'000'000};  ///< of the disk stays free
};

/// What was removed.
struct Evicted {
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;
};

/// A dataset in a cache.
struct CachedDataset {
  std::string version;
  dataset::Manifest manifest;
  DatasetUse use;
};
/// All datasets of the cache, the one used longest ago first. One whose manifest cannot be read is left out:
/// its shards belong to nothing.
Result<std::vector<CachedDataset>> cached_datasets(const CacheFolder& cache);

/// Bytes that can be written now within the limits.
Result<std::uint64_t> room_in(const CacheFolder& cache, const CacheLimits& limits);

/// Bytes of shards that may be evicted.
Result<std::uint64_t> removable_bytes(const CacheFolder& cache);

/// Removes shards until `bytes` can be written within the limits. NoSpace, with the reason, if that is
/// impossible; then nothing is removed.
Result<Evicted> make_room(const CacheFolder& cache, const CacheLimits& limits, std::uint64_t bytes);

/// Unavailable, naming the process, if one uses the dataset.
Status check_unused(const CacheFolder& cache, std::string_view version);

/// Removes a damaged shard, also of datasets in use: readers find it at the source. Ok if it does not exist.
/// REQUIRES: lease_shard().
Status remove_shard(const CacheFolder& cache, const std::string& key);

/// Removes the shards of a dataset that no other dataset uses, and its folder. Unavailable if it is in use.
Result<Evicted> purge_dataset(const CacheFolder& cache, const CachedDataset& dataset);

/// Removes what killed processes left: unfinished shards, and shards of no dataset.
Result<Evicted> remove_leftovers(const CacheFolder& cache);

}  // namespace stoker::stage
