// The folder of a dataset in a cache: manifest, index, and a link for each shard, to the cache or to the
// source. Thread-safe: the folder is the only state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/shard_source.h"
#include "stage/cache/shard_copy.h"
#include "stoker/status.h"

namespace stoker::stage {

/// Why a shard is read at the source although it was in the cache.
constexpr std::string_view kRemovedByOthers = "other processes remove it from the cache";

class DatasetFolder {
 public:
  /// `source` is the folder of the dataset, `dataset` must outlive the object.
  DatasetFolder(const CacheFolder& cache, const dataset::OpenDataset& dataset, Path source);

  const Path& path() const { return path_; }
  /// Creates it, or its missing files: shards without a link get one to the source.
  Status publish() const;
  /// Readers that open the shard find it in the cache from now on, or at the source if it is gone.
  Status link_to_cache(const CacheableShard& shard) const;
  /// Readers that open the shard find it at the source from now on.
  Status link_to_source(const CacheableShard& shard) const;
  bool is_cached(const CacheableShard& shard) const { return path_exists(path_ / link_to_shard(shard.key)); }
  bool is_published() const { return path_exists(path_ / dataset::kManifestFile); }

 private:
  Status link_if_missing(const std::string& name) const;
  Status write_if_different(std::string_view name, std::string_view text) const;

  const dataset::OpenDataset& dataset_;
  const Path source_;
  const Path path_;
};

/// Whether the cache can hold it. A file with further source files beside it stays at the source.
inline bool is_cacheable(const CacheableShard& shard) { return shard.parts.empty() || shard.is_folder; }

/// All shards of a dataset, or of the named splits, in order. NotFound for an unknown split.
Result<std::vector<CacheableShard>> cacheable_shards(const dataset::OpenDataset& dataset, const Path& source,
                                                     const std::vector<std::string>& splits);
/// The shards in CacheRequest::order.
std::vector<CacheableShard> ordered(std::vector<CacheableShard> shards,
                                    const std::vector<std::uint32_t>& order);
/// Their sizes.
std::vector<std::uint64_t> bytes_of(const std::vector<CacheableShard>& shards);

}  // namespace stoker::stage
