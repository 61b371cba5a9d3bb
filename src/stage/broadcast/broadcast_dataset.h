// Stages a dataset on several nodes at once: each shard is read from the source by one of them, and the nodes
// send it to each other. Used at the start of a job. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stage/broadcast/swarm.h"
#include "stage/broadcast/swarm_server.h"
#include "stage/cache/stage_dataset.h"

namespace stoker::stage {

/// The nodes of a job, as one of them sees them.
struct BroadcastNodes {
  SwarmServer* server = nullptr;                    ///< of this node
  std::uint32_t node = 0;                           ///< its number
  std::vector<std::vector<std::string>> addresses;  ///< of each node's server; empty: it has none
  std::string secret;                               ///< of the job
  ByteCount rate;                                   ///< of a link in each direction; 0: no limit
  SwarmLimits limits = {};
};

/// A dataset that this node stages, and serves to others as long as the object exists.
class DatasetBroadcast {
 public:
  /// All nodes call it with the same dataset and the same `request.order`. `request.threads` is not used.
  DatasetBroadcast(const CacheFolder& cache, std::shared_ptr<const dataset::OpenDataset> dataset,
                   const CacheRequest& request, BroadcastNodes nodes);
  DatasetBroadcast(const DatasetBroadcast&) = delete;
  DatasetBroadcast& operator=(const DatasetBroadcast&) = delete;
  ~DatasetBroadcast();

  /// Until all shards are here or left at the source. Errors as stage_dataset(), whose requirements hold here
  /// too. Call it once.
  Result<CacheReport> run(Progress& progress);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker::stage
