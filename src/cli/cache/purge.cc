// `stoker cache purge`: docs/commands/cache-purge.md
#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/cache/cache_choice.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace stoker::cli {
namespace {

struct PurgeArguments {
  std::vector<std::string> datasets;
  std::optional<Duration> older_than;
  bool all = false;
  bool dry_run = false;
};

Result<int> purge(const PurgeArguments& o, const Path& path, Output& out) {
  STOKER_ASSIGN_OR_RETURN(cache, stage::CacheFolder::find(path));
  STOKER_ASSIGN_OR_RETURN(chosen, chosen_datasets(cache, o.datasets));
  STOKER_ASSIGN_OR_RETURN(now, stage::filesystem_time(cache));
  const double age_s = o.older_than ? Seconds(*o.older_than).count() : 0;
  std::uint64_t bytes = 0, in_use = 0;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const stage::CachedDataset& dataset : chosen) {
    if (now - dataset.use.last_used < age_s) continue;
    Status kept;
    std::uint64_t purged = 0;
    if (o.dry_run) {
      kept = stage::check_unused(cache, dataset.version);
    } else {
      const auto evicted = stage::purge_dataset(cache, dataset);
      if (!evicted.ok() && evicted.status().code() != Code::unavailable) return evicted.status();
      if (evicted.ok()) purged = evicted->bytes;
      kept = evicted.status();
    }
    bytes += purged;
    in_use += kept.ok() ? 0 : 1;
    list.push_back({{"version", dataset.version}, {"bytes", purged}, {"in_use", !kept.ok()}});
    if (!kept.ok()) {
      out.note("{} ({}): kept: {}", printable(dataset.use.source.string()), dataset.manifest.short_version(),
               std::string(kept.message()));
    } else {
      out.line("{} ({}): {}", printable(dataset.use.source.string()), dataset.manifest.short_version(),
               o.dry_run ? std::string("would be removed") : format("removed, {}", rounded({purged})));
    }
  }
  out.json(json_text(nlohmann::ordered_json{
      {"cache", printable(path.string())}, {"bytes", bytes}, {"dry_run", o.dry_run}, {"datasets", list}}));
  // A dataset that was named and is in use is an error; one of all of them is not.
  return in_use > 0 && !o.datasets.empty() ? exit_code::kFailed : exit_code::kOk;
}

}  // namespace

int cache_purge(std::span<const std::string> words, Output& out) {
  PurgeArguments o;
  CacheOption cache;
  Arguments arguments("cache purge", "Remove datasets from the node-local cache, except datasets in use.");
  arguments.positional_list("DATASET", &o.datasets, "Versions or source folders");
  arguments.option("--older-than", &o.older_than, "TIME", "Only datasets that were not used for TIME: 7d");
  arguments.flag("--all", &o.all, "All datasets");
  arguments.flag("--dry-run", &o.dry_run, "Show what would be removed");
  cache.declare(arguments);
  arguments.example("stoker cache purge --all --older-than 7d --cache cache");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.datasets.empty() == !o.all)
    return out.fail(invalid("cache purge: name datasets, or all of them").cure("stoker cache purge --all"));
  const auto code = purge(o, cache.path(), out);
  return code.ok() ? *code : out.fail(code.error());
}

}  // namespace stoker::cli
