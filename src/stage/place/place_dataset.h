// Copies a dataset of a job to a node before the ranks start. Used by `stoker stage`. Thread-safe: no state
// but the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "stage/broadcast/broadcast_dataset.h"
#include "stage/cache/stage_dataset.h"
#include "stage/cache/use_lease.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::stage {

/// A dataset whose first shards are there.
struct UsableDataset {
  Path folder;  ///< in the cache
  std::string version;
};

/// A dataset of a job.
struct PlaceRequest {
  Path source;
  std::optional<std::string> split;  ///< empty: all splits
  Path cache;                        ///< folder of the cache
  ByteCount quota;                   ///< of the cache; 0: no limit but the disk
  bool is_shared = false;            ///< other users may copy from the cache
  bool is_decided = true;            ///< otherwise decide_place() does, with `epochs` and `memory_room`
  std::uint64_t epochs = 1;
  std::uint64_t memory_room = 0;
  std::optional<BroadcastNodes> nodes;  ///< that stage it together; nullopt: this one alone
  /// Positions of the shards in the order in which the ranks need them; may be empty, and the result too.
  std::function<std::vector<std::uint32_t>(const dataset::OpenDataset&)> order;
  /// Called at most once, from any thread, as CacheRequest::on_usable.
  std::function<void(const UsableDataset&)> on_usable;
  bool needs_order = false;  ///< `on_usable` is not called if the result of `order` is empty
};

/// Where the ranks of this node read it.
struct PlacedDataset {
  std::optional<Path> folder;  ///< in the cache; nullopt: at the source
  std::string note;            ///< for the output of the run, without a final period
  std::string version;         ///< of the dataset, which all nodes must agree on
  std::uint64_t copied = 0;    ///< shards
  std::uint64_t copied_bytes = 0;
  std::uint64_t received_bytes = 0;             ///< of them from other nodes and other users' caches
  std::uint64_t hit_bytes = 0;                  ///< that were in the cache
  std::optional<OwnLease> lease;                ///< keeps the shards while it exists
  std::unique_ptr<DatasetBroadcast> broadcast;  ///< serves the other nodes while it exists
};

/// A cache that cannot be used, such as one on a full disk, is noted, and the source is read. An error, such
/// as Corrupt, means that the dataset cannot be used at all; Cancelled after a stop.
Result<PlacedDataset> place_dataset(const PlaceRequest& request, Progress& progress);

/// "12 shards: 10 copied (1.2 GB, 640 MB/s), 2 in the cache already".
std::string summary_of(const CacheReport& report);

}  // namespace stoker::stage
