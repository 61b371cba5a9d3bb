// Caches of other users of the node, from which shards are copied instead of from the source. Their bytes are
// trusted no more than bytes from the network: every block is compared with its SHA-256, and a copy belongs
// to this user. Thread-safe: no state but the folders.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stage/cache/cache_folder.h"
#include "stage/cache/shard_copy.h"
#include "stoker/status.h"

namespace stoker::stage {

/// Lets other users read shards of the cache, not list them: they need the key, which is in the manifest of
/// the dataset, and what identifies a dataset stays hidden.
Status share_cache(const CacheFolder& cache);

class SharedCaches {
 public:
  /// The caches of other users beside `cache`, "stoker-cache-<user id>", on the same filesystem.
  static SharedCaches beside(const CacheFolder& cache);

  /// Whether one of them has a file of the shard's key and size, which may be forged.
  bool has(const CacheableShard& shard) const { return open(shard).ok(); }
  /// Copies the shard into `cache`. Nothing if none of them has it with the right bytes, and for shards that
  /// have several files, or no SHA-256: then it is read at the source. REQUIRES: lease_shard().
  std::optional<CopyResult> copy(const CacheFolder& cache, const CacheableShard& shard,
                                 const CopyProgress& progress) const;

 private:
  // Its bytes may be forged or change at any time.
  Result<codec::ShardFile> open(const CacheableShard& shard) const;

  std::vector<Path> folders_;
  std::uint64_t device_ = 0;  // st_dev
};

}  // namespace stoker::stage
