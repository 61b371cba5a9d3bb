// Decides whether a job reads a dataset from its source or from a copy on the node's disk. One function for
// `stoker cache why` and the start of a job. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stage/cache/eviction.h"
#include "stage/cache/shard_copy.h"
#include "stoker/status.h"

namespace stoker::stage {

/// Epochs of a script, which are unknown.
inline constexpr std::uint64_t kAssumedEpochs = 10;

/// What the decision needs. Rates in bytes per second; 0: unknown.
struct PlaceFacts {
  std::uint64_t bytes = 0;         ///< that the job reads in an epoch
  std::uint64_t cached_bytes = 0;  ///< of them in the cache
  std::uint64_t shared_bytes = 0;  ///< of them only in caches of other users of the node
  std::uint64_t disk_room = 0;     ///< on the node's disk, with what can be evicted
  std::uint64_t memory_room = 0;   ///< that the page cache of the job can use
  double source_rate = 0;          ///< of reading at the source
  double disk_rate = 0;            ///< of reading the node's disk
  double write_rate = 0;           ///< of writing it
  double demand_rate = 0;          ///< that the training consumes
  std::uint64_t epochs = 1;
  std::string source_filesystem;  ///< as shared_filesystem_at(): "" for a disk of this node
};

/// Whether to copy the dataset to the node's disk, with the forecast.
struct PlaceDecision {
  bool is_copied = false;
  std::string reason;                             ///< a clause without a final period
  double staging_s = 0;                           ///< until the whole dataset is on the disk
  double shared_epoch_s = 0;                      ///< reading time of an epoch at the source, after the first
  double local_epoch_s = 0;                       ///< and on the disk
  std::optional<std::uint64_t> break_even_epoch;  ///< staging has paid at its end; nullopt: never
};

PlaceDecision decide_place(const PlaceFacts& facts);

/// Facts of a dataset and this node: sizes, room, and rates that are measured within about two seconds. The
/// caller sets `memory_room`, `demand_rate` and `epochs`.
Result<PlaceFacts> measure_facts(const CacheFolder& cache, const CacheLimits& limits, const Path& source,
                                 const std::vector<CacheableShard>& shards);

/// The same for a host without a cache, whose disk at `folder` would hold one: the forecast of `stoker
/// check`.
Result<PlaceFacts> measure_facts(const Path& folder, const Path& source,
                                 const std::vector<CacheableShard>& shards);

/// Reading speed of a file in bytes per second, past the page cache: up to 64 MiB from its middle, at most
/// one second. Errors as File::open_read().
Result<double> measure_read_rate(const Path& file);
/// Writing speed of a folder's disk, to the disk, with a file of 64 MiB that is removed. NoSpace.
Result<double> measure_write_rate(const Path& folder);

}  // namespace stoker::stage
