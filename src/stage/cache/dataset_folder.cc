#include "stage/cache/dataset_folder.h"

#include <algorithm>

namespace stoker::stage {

DatasetFolder::DatasetFolder(const CacheFolder& cache, const dataset::OpenDataset& dataset, Path source)
    : dataset_(dataset), source_(std::move(source)), path_(cache.dataset(dataset.manifest.version)) {}

Status DatasetFolder::publish() const {
  STOKER_RETURN_IF_ERROR(make_directories(path_));
  STOKER_ASSIGN_OR_RETURN(shards, cacheable_shards(dataset_, source_, {}));
  for (const CacheableShard& shard : shards) {
    STOKER_RETURN_IF_ERROR(link_if_missing(shard.info->file));
    if (is_cacheable(shard)) continue;
    for (const codec::ShardPart& part : shard.parts) STOKER_RETURN_IF_ERROR(link_if_missing(part.file));
  }
  const auto bytes = dataset_.index.bytes();
  const std::string_view index(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  STOKER_RETURN_IF_ERROR(write_if_different(dataset::kIndexFile, index));
  // Last: a folder without it is not a dataset.
  return write_if_different(dataset::kManifestFile, dataset::to_json(dataset_.manifest));
}

Status DatasetFolder::link_to_cache(const CacheableShard& shard) const {
  STOKER_RETURN_IF_ERROR(replace_link(link_to_shard(shard.key), path_ / shard.info->file));
  // Another process may have removed it since it was found.
  return is_cached(shard) ? Status() : link_to_source(shard);
}

Status DatasetFolder::link_to_source(const CacheableShard& shard) const {
  return replace_link(source_ / shard.info->file, path_ / shard.info->file);
}

Status DatasetFolder::link_if_missing(const std::string& name) const {
  const Path link = path_ / name;
  if (path_exists(link)) return {};
  STOKER_RETURN_IF_ERROR(make_directories(link.parent_path()));
  return replace_link(source_ / name, link);
}

Status DatasetFolder::write_if_different(std::string_view name, std::string_view text) const {
  const auto found = read_file(path_ / name, ByteCount{text.size()});
  return found.ok() && *found == text ? Status() : write_file(path_ / name, text, Durability::synced);
}

Result<std::vector<CacheableShard>> cacheable_shards(const dataset::OpenDataset& dataset, const Path& source,
                                                     const std::vector<std::string>& splits) {
  const dataset::Manifest& manifest = dataset.manifest;
  for (const std::string& split : splits) STOKER_RETURN_IF_ERROR(manifest.split(split).status());
  std::vector<CacheableShard> shards;
  std::size_t section = 0;
  for (const dataset::SplitInfo& split : manifest.splits) {
    const bool is_requested =
        splits.empty() || std::find(splits.begin(), splits.end(), split.name) != splits.end();
    for (const dataset::ShardInfo& info : split.shards) {
      const codec::ChunkMap* chunks = dataset.index.sections()[section++].chunks();
      if (!is_requested) continue;
      CacheableShard shard{.info = &info,
                           .hash = manifest.schema.block_hash,
                           .key = shard_key(manifest, info),
                           .parts = chunks ? chunks->parts() : std::vector<codec::ShardPart>(),
                           .is_folder = false};
      shard.is_folder = !shard.parts.empty() && folder_exists(source / info.file);
      shards.push_back(std::move(shard));
    }
  }
  return shards;
}

std::vector<CacheableShard> ordered(std::vector<CacheableShard> shards,
                                    const std::vector<std::uint32_t>& order) {
  std::vector<CacheableShard> sorted;
  std::vector<bool> is_taken(shards.size());
  const auto take = [&](std::size_t i) {
    if (i >= shards.size() || is_taken[i]) return;
    is_taken[i] = true;
    sorted.push_back(std::move(shards[i]));
  };
  for (const std::uint32_t i : order) take(i);
  for (std::size_t i = 0; i < shards.size(); ++i) take(i);
  return sorted;
}

std::vector<std::uint64_t> bytes_of(const std::vector<CacheableShard>& shards) {
  std::vector<std::uint64_t> bytes;
  bytes.reserve(shards.size());
  for (const CacheableShard& shard : shards) bytes.push_back(shard.info->bytes);
  return bytes;
}

}  // namespace stoker::stage
