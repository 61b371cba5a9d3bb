// A user's cache of shards in a folder on a node's disk: its layout, its owner and its contents.
// Format: docs/formats/cache.md. Thread-safe: the folder is the only state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "dataset/manifest.h"
#include "stoker/status.h"

namespace stoker::stage {

/// The folder's name in a folder that others use too: "stoker-cache-<user id>".
std::string cache_name();
/// The cache folder: `requested` if it is set, else STOKER_CACHE, else cache_name() in
/// node_local_base().
Path cache_path(const Path& requested, const Environment& environment);

/// The name of a shard in the cache. Shards with equal bytes have the same name, whatever their dataset. A
/// shard whose blocks have only a CRC-32C, which does not identify bytes, has a name of its dataset's
/// version.
std::string shard_key(const dataset::Manifest& manifest, const dataset::ShardInfo& shard);

/// Whether it is the name of a shard or a dataset in a cache: 64 hexadecimal digits.
bool is_key(std::string_view name);
/// The key of a shard that is being copied or removed, from its name in CacheFolder::partial(); "" for other
/// names.
std::string unfinished_key(const std::string& name);

/// A cache. Only its owner writes to it and reads datasets there: other users could serve forged bytes. They
/// may copy its shards (share_cache()).
class CacheFolder {
 public:
  /// Creates the cache if the path does not exist or is an empty folder. Invalid for a folder with other
  /// contents, a cache of a different user, one that others may write to, and an unknown version.
  static Result<CacheFolder> open(const Path& path);
  /// NotFound if there is no cache.
  static Result<CacheFolder> find(const Path& path);

  const Path& path() const { return path_; }
  /// A complete shard: a file, or a folder for a shard that is one.
  Path shard(std::string_view key) const { return shards() / key; }
  Path shards() const { return path_ / "shards"; }
  /// Shards that are being written or removed.
  Path partial() const { return path_ / "partial"; }
  /// A dataset as a folder: manifest, index, and a link for each shard, to the cache or to the source.
  Path dataset(std::string_view version) const { return datasets() / version; }
  Path datasets() const { return path_ / "datasets"; }
  /// One file for each job that uses a dataset.
  Path leases() const { return path_ / "leases"; }
  /// A link to the source of a dataset; its time is the last use.
  Path use(std::string_view version) const { return uses() / version; }
  Path uses() const { return path_ / "uses"; }

 private:
  explicit CacheFolder(Path path) : path_(std::move(path)) {}
  Path path_;
};

/// The last use of a dataset.
struct DatasetUse {
  Path source;           ///< absolute
  double last_used = 0;  ///< Unix seconds, by the clock of the cache's filesystem
};
Result<DatasetUse> read_use(const CacheFolder& cache, std::string_view version);
/// Notes that the dataset is used.
Status note_use(const CacheFolder& cache, std::string_view version, const Path& source);

/// The target of a link in a dataset's folder that leads to a shard of the cache.
inline Path link_to_shard(std::string_view key) { return Path("../../shards") / key; }
/// Makes `link` a symbolic link to `target`, whatever it was; readers see the old or the new one.
Status replace_link(const Path& target, const Path& link);

/// The current time by the clock of the cache's filesystem, Unix seconds; the clocks of several nodes differ.
Result<double> filesystem_time(const CacheFolder& cache);

/// Bytes of a file, or of all files in a folder; 0 if it does not exist.
std::uint64_t bytes_at(const Path& path);
/// Bytes of all shards, of unfinished ones too.
std::uint64_t bytes_used(const CacheFolder& cache);

}  // namespace stoker::stage
