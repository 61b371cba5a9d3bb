// A process that begins a lease may at the same time see a shard that is being removed. Both check twice. The
// remover renames the shard, reads the leases again, and puts the shard back if it is in use. The stager
// begins its lease, and checks that all shards exist after it has made the dataset's folder.
#include "stage/cache/eviction.h"

#include <algorithm>
#include <map>
#include <set>

#include "record/filesystem_time.h"
#include "stage/cache/shard_copy.h"
#include "stage/cache/use_lease.h"

namespace stoker::stage {
namespace {

// Taking a lease is a matter of milliseconds.
constexpr double kOld_s = 3600;

// Keys of all shards of a dataset, with their file names.
std::map<std::string, std::string> keys_of(const dataset::Manifest& manifest) {
  std::map<std::string, std::string> keys;
  for (const dataset::SplitInfo& split : manifest.splits) {
    for (const dataset::ShardInfo& shard : split.shards) keys.emplace(shard_key(manifest, shard), shard.file);
  }
  return keys;
}

std::set<std::string> versions_in_use(const std::vector<DatasetLease>& leases) {
  std::set<std::string> versions;
  for (const DatasetLease& lease : leases) versions.insert(lease.version);
  return versions;
}

Result<std::set<std::string>> keys_in_use(const CacheFolder& cache,
                                          const std::vector<CachedDataset>& datasets) {
  STOKER_ASSIGN_OR_RETURN(leases, living_leases(cache));
  const std::set<std::string> versions = versions_in_use(leases);
  std::set<std::string> keys;
  for (const CachedDataset& dataset : datasets) {
    if (!versions.contains(dataset.version)) continue;
    for (const auto& [key, file] : keys_of(dataset.manifest)) keys.insert(key);
  }
  return keys;
}

enum class LinkTo { source, cache };

// Sets the links of all datasets to a shard.
void link_shard(const CacheFolder& cache, const std::vector<CachedDataset>& datasets, const std::string& key,
                LinkTo to) {
  for (const CachedDataset& dataset : datasets) {
    const auto keys = keys_of(dataset.manifest);
    const auto found = keys.find(key);
    if (found == keys.end()) continue;
    const Path target = to == LinkTo::cache ? link_to_shard(key) : dataset.use.source / found->second;
    (void)replace_link(target, cache.dataset(dataset.version) / found->second);
  }
}

// False if the shard is in use, or gone.
Result<bool> evict(const CacheFolder& cache, const std::string& key, Evicted* evicted) {
  const auto lease = lease_shard(cache, key);
  if (!lease.ok()) return false;
  const Path path = cache.shard(key);
  const Path hidden = cache.partial() / format("{}.gone-{}", key, random_name());
  STOKER_ASSIGN_OR_RETURN(before, cached_datasets(cache));
  link_shard(cache, before, key, LinkTo::source);
  if (const Status status = rename_path(path, hidden); !status.ok()) {
    if (status.code() == Code::not_found) return false;
    return status;
  }
  STOKER_ASSIGN_OR_RETURN(datasets, cached_datasets(cache));
  const auto in_use = keys_in_use(cache, datasets);
  if (!in_use.ok() || in_use->contains(key)) {
    STOKER_RETURN_IF_ERROR(rename_path(hidden, path));
    link_shard(cache, datasets, key, LinkTo::cache);
    return false;
  }
  link_shard(cache, datasets, key, LinkTo::source);
  const std::uint64_t bytes = bytes_at(hidden);
  STOKER_RETURN_IF_ERROR(remove_tree(hidden));
  evicted->shards += 1;
  evicted->bytes += bytes;
  return true;
}

// Keys that may be removed, the ones to remove first at the beginning: of no dataset, then of datasets by
// their last use, from their last shard backwards, because readers begin with the first.
Result<std::vector<std::string>> removable_keys(const CacheFolder& cache) {
  STOKER_ASSIGN_OR_RETURN(datasets, cached_datasets(cache));
  STOKER_ASSIGN_OR_RETURN(in_use, keys_in_use(cache, datasets));
  STOKER_ASSIGN_OR_RETURN(names, list_directory(cache.shards()));
  std::map<std::string, std::pair<std::size_t, std::size_t>> rank;  // dataset, shard from the end
  for (std::size_t d = 0; d < datasets.size(); ++d) {
    std::size_t shard = ~std::size_t{0};
    for (const dataset::SplitInfo& split : datasets[d].manifest.splits) {
      for (const dataset::ShardInfo& info : split.shards)
        rank[shard_key(datasets[d].manifest, info)] = {d + 1, --shard};
    }
  }
  std::vector<std::string> keys;
  std::copy_if(names.begin(), names.end(), std::back_inserter(keys),
               [&](const std::string& name) { return is_key(name) && !in_use.contains(name); });
  std::sort(keys.begin(), keys.end(),
            [&](const std::string& a, const std::string& b) { return rank[a] < rank[b]; });
  return keys;
}

std::uint64_t bytes_of(const CacheFolder& cache, const std::vector<std::string>& keys) {
  std::uint64_t bytes = 0;
  for (const std::string& key : keys) bytes += bytes_at(cache.shard(key));
  return bytes;
}

}  // namespace

Status check_unused(const CacheFolder& cache, std::string_view version) {
  STOKER_ASSIGN_OR_RETURN(leases, living_leases(cache));
  for (const DatasetLease& lease : leases) {
    if (lease.version != version) continue;
    return unavailable("process {} on {} uses it", lease.process.pid, printable(lease.process.host));
  }
  return {};
}

Result<std::vector<CachedDataset>> cached_datasets(const CacheFolder& cache) {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(cache.datasets()));
  std::vector<CachedDataset> datasets;
  for (const std::string& name : names) {
    if (!is_key(name)) continue;
    auto manifest = dataset::read_manifest(cache.dataset(name));
    const auto use = read_use(cache, name);
    if (manifest.ok() && use.ok() && manifest->version == name)
      datasets.push_back({name, *std::move(manifest), *use});
  }
  std::sort(datasets.begin(), datasets.end(), [](const CachedDataset& a, const CachedDataset& b) {
    return std::pair(a.use.last_used, a.version) < std::pair(b.use.last_used, b.version);
  });
  return datasets;
}

Result<std::uint64_t> room_in(const CacheFolder& cache, const CacheLimits& limits) {
  STOKER_ASSIGN_OR_RETURN(free, free_space(cache.path()));
  std::uint64_t room = free.value - std::min(free.value, limits.reserve.value);
  if (limits.quota.value > 0) {
    const std::uint64_t used = bytes_used(cache);
    room = std::min(room, limits.quota.value - std::min(limits.quota.value, used));
  }
  return room;
}

Result<std::uint64_t> removable_bytes(const CacheFolder& cache) {
  STOKER_ASSIGN_OR_RETURN(keys, removable_keys(cache));
  return bytes_of(cache, keys);
}

Result<Evicted> make_room(const CacheFolder& cache, const CacheLimits& limits, std::uint64_t bytes) {
  Evicted evicted;
  STOKER_ASSIGN_OR_RETURN(room, room_in(cache, limits));
  if (room >= bytes) return evicted;
  STOKER_ASSIGN_OR_RETURN(keys, removable_keys(cache));
  const std::uint64_t removable = bytes_of(cache, keys);
  if (room + removable < bytes) {
    return no_space("{}: {} is needed, {} is free within its limits, and {} could be removed", cache.path(),
                    rounded({bytes}), rounded({room}), rounded({removable}));
  }
  for (const std::string& key : keys) {
    STOKER_RETURN_IF_ERROR(evict(cache, key, &evicted).status());
    STOKER_ASSIGN_OR_RETURN(now, room_in(cache, limits));
    if (now >= bytes) return evicted;
  }
  return no_space("{}: other processes have filled it meanwhile", cache.path());
}

Status remove_shard(const CacheFolder& cache, const std::string& key) {
  const Path hidden = cache.partial() / format("{}.gone-{}", key, random_name());
  STOKER_ASSIGN_OR_RETURN(datasets, cached_datasets(cache));
  link_shard(cache, datasets, key, LinkTo::source);
  const Status status = rename_path(cache.shard(key), hidden);
  if (status.code() == Code::not_found) return {};
  STOKER_RETURN_IF_ERROR(status);
  link_shard(cache, datasets, key, LinkTo::source);  // of a process that found it before the rename
  return remove_tree(hidden);
}

Result<Evicted> purge_dataset(const CacheFolder& cache, const CachedDataset& dataset) {
  STOKER_RETURN_IF_ERROR(check_unused(cache, dataset.version));
  // Without its folder its shards belong to no dataset, unless another one has them too.
  const Path folder = cache.dataset(dataset.version);
  const Path hidden = cache.partial() / format("{}.gone-{}", dataset.version, random_name());
  STOKER_RETURN_IF_ERROR(rename_path(folder, hidden));
  const Status unused = check_unused(cache, dataset.version);
  if (!unused.ok() && ::rename(hidden.c_str(), folder.c_str()) == 0) return unused;
  STOKER_RETURN_IF_ERROR(remove_tree(hidden));
  STOKER_RETURN_IF_ERROR(unused);
  (void)remove_file(cache.use(dataset.version));
  STOKER_ASSIGN_OR_RETURN(others, cached_datasets(cache));
  std::set<std::string> kept;
  for (const CachedDataset& other : others) {
    for (const auto& [key, file] : keys_of(other.manifest)) kept.insert(key);
  }
  Evicted evicted;
  for (const auto& [key, file] : keys_of(dataset.manifest)) {
    if (!kept.contains(key)) STOKER_RETURN_IF_ERROR(evict(cache, key, &evicted).status());
  }
  return evicted;
}

Result<Evicted> remove_leftovers(const CacheFolder& cache) {
  Evicted evicted;
  STOKER_ASSIGN_OR_RETURN(names, list_directory(cache.partial()));
  STOKER_ASSIGN_OR_RETURN(now, filesystem_time(cache));
  for (const std::string& name : names) {
    const auto modified = record::modified_at(cache.partial() / name);
    // Of a lease that was being taken.
    const bool is_of_lease =
        is_key(name.substr(0, name.find('.'))) && name.find(".lease.") != std::string::npos;
    if (is_of_lease && modified.ok() && now - *modified > kOld_s) (void)remove_file(cache.partial() / name);
    const std::string key = unfinished_key(name);
    if (key.empty()) continue;
    const auto lease = lease_shard(cache, key);
    if (!lease.ok()) continue;
    const std::uint64_t bytes = bytes_at(cache.partial() / name);
    if (!remove_tree(cache.partial() / name).ok()) continue;
    evicted.shards += 1;
    evicted.bytes += bytes;
  }
  return evicted;
}

}  // namespace stoker::stage
