// Reads the shards for an index, each once and sequentially. Used by index_build. Blocks on the storage.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "pack/index/index_build.h"
#include "pack/index/index_shards.h"
#include "sources/shard_scan.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::pack {

/// A shard and the results of read_shards().
struct ScannedShard {
  explicit ScannedShard(IndexedShard shard) : entry(std::move(shard)) {}

  IndexedShard entry;
  sources::ShardScan scan;
  std::vector<Digest> blocks;
  std::vector<std::uint32_t> crcs;                  ///< of each member, in order
  std::vector<std::optional<std::int64_t>> labels;  ///< of each sample; never negative
  std::uint64_t unread_json_labels = 0;             ///< `json` members with a label that is no integer
};

struct ReadShardsOptions {
  const IndexOptions& options;
  dataset::BlockHash hash = dataset::BlockHash::sha256;
};

/// Fails with the first unreadable shard. Cancelled on stop_requested().
Status read_shards(const Path& folder, std::vector<ScannedShard>& shards, const ReadShardsOptions& how,
                   Progress& progress);

}  // namespace stoker::pack
