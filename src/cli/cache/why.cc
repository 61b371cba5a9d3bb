// `stoker cache why DATASET`: docs/commands/cache-why.md
#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/cache/cache_choice.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "loader/advice.h"
#include "stage/cache/decision.h"
#include "stage/cache/stage_dataset.h"

namespace stoker::cli {
namespace {

struct WhyArguments {
  std::string dataset;
  std::vector<std::string> splits;
  std::int64_t epochs = 1;
  std::optional<ByteCount> demand;
};

std::string rate_text(double bytes_per_s) {
  return bytes_per_s > 0 ? format("{}/s", rounded({static_cast<std::uint64_t>(bytes_per_s)})) : "unknown";
}

std::string time_text(double seconds) {
  return rounded_duration(std::chrono::duration_cast<Duration>(Seconds(std::min(seconds, 1e9))));
}

Status explain_place(const WhyArguments& o, const Path& path, const stage::CacheLimits& limits, Output& out) {
  const Path source = std::filesystem::absolute(o.dataset).lexically_normal();
  STOKER_ASSIGN_OR_RETURN(opened, dataset::open_dataset(source));
  STOKER_ASSIGN_OR_RETURN(shards, stage::cacheable_shards(opened, source, o.splits));
  STOKER_ASSIGN_OR_RETURN(cache, stage::CacheFolder::open(path));
  STOKER_ASSIGN_OR_RETURN(facts, stage::measure_facts(cache, limits, source, shards));
  facts.epochs = static_cast<std::uint64_t>(o.epochs);
  facts.demand_rate = o.demand ? static_cast<double>(o.demand->value) : 0;
  facts.memory_room = loader::detect_machine("/", current_environment()).memory.value;
  const stage::PlaceDecision decision = stage::decide_place(facts);

  const std::string shared =
      facts.shared_bytes > 0 ? format(", {} in caches of other users", rounded({facts.shared_bytes})) : "";
  out.line("{} ({}): {}, {}; {} in the cache{}", printable(o.dataset), opened.manifest.short_version(),
           counted(shards.size(), "shard"), rounded({facts.bytes}), rounded({facts.cached_bytes}), shared);
  out.line("  source     {} ({})", rate_text(facts.source_rate),
           facts.source_filesystem.empty() ? std::string("a disk of this node") : facts.source_filesystem);
  out.line("  cache      {}, room for {} ({})", rate_text(facts.disk_rate), rounded({facts.disk_room}),
           printable(path.string()));
  out.line("  memory     {} for the page cache", rounded({facts.memory_room}));
  if (decision.is_copied && decision.staging_s > 0)
    out.line("  staging    {}", time_text(decision.staging_s));
  out.line("  {}: {}", decision.is_copied ? "stage it" : "read it where it is", decision.reason);
  out.json(json_text(nlohmann::ordered_json{
      {"dataset", printable(source.string())},
      {"version", opened.manifest.version},
      {"shards", shards.size()},
      {"bytes", facts.bytes},
      {"bytes_in_cache", facts.cached_bytes},
      {"bytes_in_shared_caches", facts.shared_bytes},
      {"filesystem", facts.source_filesystem},
      {"source_bytes_per_s", facts.source_rate},
      {"cache_bytes_per_s", facts.disk_rate},
      {"cache_room_bytes", facts.disk_room},
      {"memory_bytes", facts.memory_room},
      {"epochs", facts.epochs},
      {"place", decision.is_copied ? "local" : "shared"},
      {"reason", decision.reason},
      {"staging_s", decision.staging_s},
      {"epoch_at_source_s", decision.shared_epoch_s},
      {"epoch_in_cache_s", decision.local_epoch_s},
      {"break_even_epoch", decision.break_even_epoch ? nlohmann::ordered_json(*decision.break_even_epoch)
                                                     : nlohmann::ordered_json(nullptr)}}));
  return {};
}

}  // namespace

int cache_why(std::span<const std::string> words, Output& out) {
  WhyArguments o;
  CacheOption cache;
  LimitOptions limits;
  Arguments arguments("cache why", "Show whether a copy of a dataset on the node-local disk pays.");
  arguments.positional("DATASET", &o.dataset, "Dataset folder");
  arguments.option("--split", &o.splits, "NAME", "Only the shards of this split; may be repeated");
  arguments.option("--epochs", &o.epochs, "N", "Epochs of the training");
  arguments.option("--demand", &o.demand, "SIZE",
                   "Bytes per second that the training reads (default: any rate)");
  cache.declare(arguments);
  limits.declare(arguments);
  arguments.example("stoker cache why photos-s --epochs 30 --cache cache");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.epochs < 1 || o.epochs > 1'000'000)
    return out.fail(invalid("cache why: --epochs: {} is not between 1 and 1000000", o.epochs));
  const NodeCache chosen = cache.cache();
  const Status status = explain_place(o, chosen.folder, limits.limits(chosen.quota), out);
  return status.ok() ? exit_code::kOk : out.fail(status);
}

}  // namespace stoker::cli
