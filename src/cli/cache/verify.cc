// `stoker cache verify`: docs/commands/cache-verify.md
#include <set>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/cache/cache_choice.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "stage/cache/stage_dataset.h"

namespace stoker::cli {
namespace {

Result<int> verify(const std::vector<std::string>& words, const Path& path, Output& out) {
  STOKER_ASSIGN_OR_RETURN(cache, stage::CacheFolder::find(path));
  STOKER_ASSIGN_OR_RETURN(chosen, chosen_datasets(cache, words));
  auto progress = out.progress("verifying");
  std::set<std::string> seen;
  std::uint64_t shards = 0, bytes = 0;
  std::vector<std::vector<std::string>> damaged;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const stage::CachedDataset& dataset : chosen) {
    const Path folder = cache.dataset(dataset.version);
    STOKER_ASSIGN_OR_RETURN(opened, dataset::open_dataset(folder));
    STOKER_ASSIGN_OR_RETURN(all, stage::cacheable_shards(opened, folder, {}));
    for (const stage::CacheableShard& shard : all) {
      if (progress->stop_requested()) return cancelled("stoker cache: interrupted");
      if (!seen.insert(shard.key).second) continue;
      const Status status = stage::check_cached(cache, shard, stage::HitCheck::full);
      if (status.code() == Code::not_found) continue;
      shards += 1;
      bytes += shard.info->bytes;
      progress->report({.done = shards, .total = 0, .unit = "shards", .bytes = {bytes}});
      if (status.ok()) continue;
      const auto lease = stage::lease_shard(cache, shard.key);
      if (lease.status().code() == Code::exists) continue;  // that process replaces it
      STOKER_RETURN_IF_ERROR(lease.status());
      if (stage::check_cached(cache, shard, stage::HitCheck::full).ok()) continue;  // has been replaced
      STOKER_RETURN_IF_ERROR(stage::remove_shard(cache, shard.key));
      damaged.push_back({dataset.manifest.short_version(), shard.info->file, std::string(status.message())});
      list.push_back({{"version", dataset.version},
                      {"shard", shard.info->file},
                      {"problem", std::string(status.message())}});
    }
  }
  progress.reset();
  if (!damaged.empty()) out.table({"VERSION", "SHARD", "REMOVED BECAUSE"}, damaged);
  out.line("{}: {}, {}, {}", printable(path.string()), counted(shards, "shard"), rounded({bytes}),
           damaged.empty() ? std::string("every byte verified") : format("{} damaged", damaged.size()));
  out.json(json_text(nlohmann::ordered_json{
      {"cache", printable(path.string())}, {"shards", shards}, {"bytes", bytes}, {"damaged", list}}));
  return damaged.empty() ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace

int cache_verify(std::span<const std::string> words, Output& out) {
  std::vector<std::string> datasets;
  CacheOption cache;
  Arguments arguments("cache verify",
                      "Compare every byte of the node-local cache, and remove damaged shards.");
  arguments.positional_list("DATASET", &datasets, "Versions or source folders (default: all)");
  cache.declare(arguments);
  arguments.example("stoker cache verify --cache cache");
  if (const auto code = arguments.parse(words, out)) return *code;
  install_stop_signals();
  const auto code = verify(datasets, cache.path(), out);
  return code.ok() ? *code : out.fail(code.error());
}

}  // namespace stoker::cli
