// Copies a shard into a cache, with the hash of each block compared, and checks cached ones. Thread-safe: the
// folder is the only state.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codec/chunks/shard_file.h"
#include "dataset/manifest.h"
#include "record/work_lease.h"
#include "stage/cache/cache_folder.h"
#include "stoker/status.h"

namespace stoker::stage {

/// How a cached shard is compared before it is used. Writing to one changes its modification time, which all
/// depths compare.
enum class HitCheck {
  size,     ///< size and modification time
  sampled,  ///< and the hashes of its first block, its last one and every 64th
  full,     ///< and all hashes
};
/// "size", "sampled", "full".
constexpr std::array<std::string_view, 3> names_of(HitCheck) { return {"size", "sampled", "full"}; }

/// A shard of a dataset, for the cache.
struct CacheableShard {
  const dataset::ShardInfo* info = nullptr;
  dataset::BlockHash hash{};
  std::string key;
  std::vector<codec::ShardPart> parts;  ///< its files, if it has several; empty for one file
  bool is_folder = false;               ///< the files are in a folder, otherwise beside the shard
};

/// Ok if the cached shard is the one of the manifest, NotFound if it is not there, Corrupt if it differs.
Status check_cached(const CacheFolder& cache, const CacheableShard& shard, HitCheck depth);

/// Corrupt if `bytes` are not the block of the manifest.
Status check_block(const CacheableShard& shard, std::size_t block, std::span<const std::byte> bytes);

/// The shard at its source. Corrupt if its size differs.
Result<codec::ShardFile> open_source(const CacheableShard& shard, const Path& source);

/// The right to copy or remove a shard, for one process at a time. Exists if a living process has it.
Result<record::WorkLease> lease_shard(const CacheFolder& cache, std::string_view key);

/// A shard of a cache that is being written, in any order. Its space is allocated. What is not published is
/// removed. Thread-compatible, except for write().
class PartialShard {
 public:
  /// REQUIRES: lease_shard(), and a shard that is one file or one folder. Errors of the disk.
  static Result<PartialShard> create(const CacheFolder& cache, const CacheableShard& shard);
  PartialShard(PartialShard&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        target_(std::move(other.target_)),
        files_(std::move(other.files_)),
        ends_(std::move(other.ends_)) {}
  PartialShard& operator=(PartialShard&&) = delete;
  ~PartialShard();

  const Path& path() const { return path_; }
  /// From any thread.
  Status write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  /// Makes the shard visible, with all of its bytes on the disk.
  Status publish() &&;

 private:
  PartialShard(Path path, Path target, std::vector<codec::ShardPart> files);
  Path file(std::size_t i) const;

  Path path_;
  Path target_;
  std::vector<codec::ShardPart> files_;  // one without a name for a shard that is a file
  std::vector<std::uint64_t> ends_;      // end offset of each file
};

/// Called with the number of bytes copied since the last call: 0 when its space is allocated. An error ends
/// the copy.
using CopyProgress = std::function<Status(std::uint64_t bytes)>;

/// How a copy ended. At most one of both is an error.
struct CopyResult {
  Status source;  ///< of reading the shard: Corrupt if a block has a different hash; Cancelled by `progress`
  Status cache;   ///< of writing it
};

/// Copies the shard at `source` into the cache. It becomes visible when it is complete, has the right hash
/// and is on disk. After an error nothing is left of it. REQUIRES: lease_shard(), and a shard that is one
/// file or one folder.
CopyResult copy_shard(const CacheFolder& cache, const CacheableShard& shard, const Path& source,
                      const CopyProgress& progress);

/// The same from an open file, called `name` in errors.
CopyResult copy_open_shard(const CacheFolder& cache, const CacheableShard& shard,
                           const codec::ShardFile& file, const Path& name, const CopyProgress& progress);

}  // namespace stoker::stage
