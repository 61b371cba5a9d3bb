// `stoker cache stage DATASET`: docs/commands/cache-stage.md
#include <unistd.h>

#include "base/encode.h"
#include "base/enum_names.h"
#include "base/json/json.h"
#include "cli/cache/cache_choice.h"
#include "cli/commands.h"
#include "cli/data/threads.h"
#include "cli/output.h"
#include "stage/cache/shared_caches.h"
#include "stage/place/place_dataset.h"

namespace stoker::cli {
namespace {

struct CacheStageArguments {
  std::string dataset;
  std::vector<std::string> splits;
  std::string check = "sampled";
  std::optional<std::int64_t> lease;
  bool is_shared = false;
};

std::string to_json(const stage::CacheReport& report, const Path& source) {
  nlohmann::ordered_json left = nlohmann::ordered_json::array();
  for (const stage::LeftAtSource& shard : report.left)
    left.push_back({{"shard", shard.shard}, {"reason", shard.reason}});
  return json_text(nlohmann::ordered_json{{"folder", printable(report.folder.string())},
                                          {"version", report.version},
                                          {"source", printable(source.string())},
                                          {"shards", report.shards},
                                          {"in_cache", report.hits},
                                          {"in_cache_bytes", report.hit_bytes},
                                          {"copied", report.copied},
                                          {"copied_bytes", report.copied_bytes},
                                          {"from_other_users_bytes", report.shared_bytes},
                                          {"replaced", report.replaced},
                                          {"evicted", report.evicted.shards},
                                          {"evicted_bytes", report.evicted.bytes},
                                          {"left_at_source", left},
                                          {"seconds", report.seconds}});
}

Result<record::ProcessIdentity> user_of(const CacheStageArguments& o) {
  if (!o.lease) return record::process_with_pid(::getppid());
  const record::ProcessIdentity process = record::process_with_pid(*o.lease);
  if (process.pid_start != 0) return process;
  return invalid("cache stage: --lease: there is no process {}", *o.lease)
      .cure("--lease $$ in the batch script that reads the data");
}

Result<stage::CacheReport> stage_and_lease(const CacheStageArguments& o, const Path& cache_folder,
                                           const stage::CacheRequest& request, Output& out) {
  STOKER_ASSIGN_OR_RETURN(opened, dataset::open_dataset(request.source));
  STOKER_ASSIGN_OR_RETURN(process, user_of(o));
  STOKER_ASSIGN_OR_RETURN(cache, stage::CacheFolder::open(cache_folder));
  if (o.is_shared) STOKER_RETURN_IF_ERROR(stage::share_cache(cache));
  STOKER_RETURN_IF_ERROR(stage::begin_lease(cache, opened.manifest.version, process).status());
  const auto progress = out.progress(format("staging {}", printable(request.source.filename().string())));
  return stage::stage_dataset(cache, opened, request, *progress);
}

}  // namespace

int cache_stage(std::span<const std::string> words, Output& out) {
  CacheStageArguments o;
  CacheOption cache;
  LimitOptions limits;
  ThreadsOption threads;
  Arguments arguments("cache stage", "Copy a dataset to the node-local cache and print its folder there.");
  arguments.positional("DATASET", &o.dataset, "Dataset folder");
  arguments.option("--split", &o.splits, "NAME", "Copy only the shards of this split; may be repeated");
  cache.declare(arguments);
  limits.declare(arguments);
  arguments.option("--check", &o.check, "DEPTH", "Compare shards of the cache by size, sampled or full");
  arguments.choices(names_of(stage::HitCheck{}));
  arguments.option("--lease", &o.lease, "PID",
                   "Keep the dataset while this process lives (default: the calling shell)");
  arguments.flag("--share", &o.is_shared, "Let other users of this node copy shards from the cache");
  threads.declare(arguments, "Copy N shards at a time (default: all cores)");
  arguments.example("stoker cache stage photos-s --cache cache");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto check = enum_named<stage::HitCheck>(o.check);
  if (!check) {
    const auto names = names_of(stage::HitCheck{});
    return out.fail(invalid("cache stage: --check: '{}' is unknown{}", printable(o.check),
                            suggestion(o.check, std::span(names))));
  }
  const auto thread_count = threads.count("cache stage");
  if (!thread_count.ok()) return out.fail(thread_count.error());
  const Path source = std::filesystem::absolute(o.dataset).lexically_normal();
  install_stop_signals();
  const NodeCache chosen = cache.cache();
  o.is_shared = o.is_shared || chosen.is_shared;
  const auto report = stage_and_lease(o, chosen.folder,
                                      {.source = source,
                                       .splits = o.splits,
                                       .limits = limits.limits(chosen.quota),
                                       .check = *check,
                                       .threads = *thread_count},
                                      out);
  if (!report.ok()) {
    const bool is_full = report.status().code() == Code::no_space;
    return out.fail(is_full ? Status(report.status()).cure("--cache DIR, a folder on a disk with more space")
                            : report.status());
  }
  out.note("{} ({}): {}", printable(o.dataset), report->version.substr(0, 8), stage::summary_of(*report));
  if (!report->left.empty()) {
    out.note("  {} is read from the source: {}", printable(report->left[0].shard), report->left[0].reason);
  }
  out.line("{}", report->folder.string());
  out.json(to_json(*report, source));
  return exit_code::kOk;
}

}  // namespace stoker::cli
