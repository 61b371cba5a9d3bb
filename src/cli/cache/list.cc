// `stoker cache list`: docs/commands/cache-list.md
#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/cache/cache_choice.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "stage/cache/use_lease.h"

namespace stoker::cli {
namespace {

// What the cache holds of a dataset.
struct CachedPart {
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;
};

CachedPart cached_part(const stage::CacheFolder& cache, const dataset::Manifest& manifest) {
  CachedPart part;
  for (const dataset::SplitInfo& split : manifest.splits) {
    for (const dataset::ShardInfo& shard : split.shards) {
      if (!path_exists(cache.shard(stage::shard_key(manifest, shard)))) continue;
      part.shards += 1;
      part.bytes += shard.bytes;
    }
  }
  return part;
}

std::string age_text(double now, double then) {
  if (now - then < 1) return "now";
  return rounded_duration(std::chrono::duration_cast<Duration>(Seconds(now - then)));
}

Status list_cache(const Path& path, Output& out) {
  STOKER_ASSIGN_OR_RETURN(cache, stage::CacheFolder::find(path));
  STOKER_ASSIGN_OR_RETURN(datasets, stage::cached_datasets(cache));
  STOKER_ASSIGN_OR_RETURN(leases, stage::living_leases(cache));
  STOKER_ASSIGN_OR_RETURN(now, stage::filesystem_time(cache));
  STOKER_ASSIGN_OR_RETURN(free, free_space(cache.path()));
  const std::uint64_t used = stage::bytes_used(cache);
  std::vector<std::vector<std::string>> rows;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (auto dataset = datasets.rbegin(); dataset != datasets.rend(); ++dataset) {
    const CachedPart part = cached_part(cache, dataset->manifest);
    std::vector<std::string> users;
    nlohmann::ordered_json leased = nlohmann::ordered_json::array();
    for (const stage::DatasetLease& lease : leases) {
      if (lease.version != dataset->version) continue;
      users.push_back(format("{}", lease.process.pid));
      leased.push_back({{"host", lease.process.host}, {"pid", lease.process.pid}});
    }
    rows.push_back({dataset->manifest.short_version(), printable(dataset->use.source.string()),
                    format("{}/{}", part.shards, dataset->manifest.shard_count()), rounded({part.bytes}),
                    age_text(now, dataset->use.last_used), users.empty() ? "-" : join(users, ", ")});
    list.push_back({{"version", dataset->version},
                    {"source", printable(dataset->use.source.string())},
                    {"shards", dataset->manifest.shard_count()},
                    {"shards_in_cache", part.shards},
                    {"bytes", dataset->manifest.bytes()},
                    {"bytes_in_cache", part.bytes},
                    {"last_used", dataset->use.last_used},
                    {"used_by", leased}});
  }
  if (!rows.empty()) out.table({"VERSION", "SOURCE", "SHARDS", "SIZE", "LAST USED", "USED BY"}, rows);
  out.line("{}: {}, {}; {} free on the disk", printable(path.string()), counted(datasets.size(), "dataset"),
           rounded({used}), rounded(free));
  out.json(json_text(nlohmann::ordered_json{
      {"cache", printable(path.string())}, {"bytes", used}, {"free_bytes", free.value}, {"datasets", list}}));
  return {};
}

}  // namespace

int cache_list(std::span<const std::string> words, Output& out) {
  CacheOption cache;
  Arguments arguments("cache list",
                      "List the datasets of the node-local cache and the processes that use them.");
  cache.declare(arguments);
  arguments.example("stoker cache list --cache cache");
  if (const auto code = arguments.parse(words, out)) return *code;
  const Status status = list_cache(cache.path(), out);
  return status.ok() ? exit_code::kOk : out.fail(status);
}

}  // namespace stoker::cli
