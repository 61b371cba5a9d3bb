// Shards that an index is made of, each read once, front to back. Used by index_build. Blocks on the storage.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/progress.h"
#include "base/status.h"
#include "data/look/index_build.h"
#include "data/look/index_shards.h"
#include "data/look/shard_scan.h"

namespace stoker::data {

/// One shard, and what read_shards() has found in it.
struct ShardInIndex {
  explicit ShardInIndex(IndexedShard shard) : is(std::move(shard)) {}

  IndexedShard is;
  ShardScan scan;
  std::vector<Digest> blocks;
  std::vector<std::uint32_t> crcs;                  ///< of each member, in order
  std::vector<std::optional<std::int64_t>> labels;  ///< of each sample; never negative
};

struct IndexReading {
  const IndexOptions& options;
  formats::BlockHash hash = formats::BlockHash::sha256;
};

/// Fails with the first shard that cannot be read. Cancelled when `progress` says stop.
Status read_shards(const Path& folder, std::vector<ShardInIndex>& shards, const IndexReading& how,
                   Progress& progress);

}  // namespace stoker::data
