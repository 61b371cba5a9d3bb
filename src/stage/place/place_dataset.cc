#include "stage/place/place_dataset.h"

#include <algorithm>

#include "base/language/counted.h"
#include "stage/cache/decision.h"
#include "stage/cache/shared_caches.h"

namespace stoker::stage {
namespace {

constexpr int kThreads = 4;

std::vector<std::string> splits_of(const PlaceRequest& request) {
  return request.split ? std::vector{*request.split} : std::vector<std::string>();
}

Result<PlaceDecision> decide(const CacheFolder& cache, const CacheLimits& limits,
                             const dataset::OpenDataset& opened, const PlaceRequest& request) {
  STOKER_ASSIGN_OR_RETURN(shards, cacheable_shards(opened, request.source, splits_of(request)));
  STOKER_ASSIGN_OR_RETURN(facts, measure_facts(cache, limits, request.source, shards));
  facts.epochs = request.epochs;
  facts.memory_room = request.memory_room;
  return decide_place(facts);
}

// The dataset itself is at fault, or the user stopped: reading the source would not help.
bool is_final(const Status& status) {
  return status.code() == Code::corrupt || status.code() == Code::cancelled;
}

using OpenedDataset = std::shared_ptr<const dataset::OpenDataset>;

// With the other nodes if there are any. A broadcast that other processes disturbed is completed alone.
Result<CacheReport> stage_shards(const CacheFolder& cache, const OpenedDataset& opened,
                                 const PlaceRequest& request, Progress& progress, PlacedDataset& placed) {
  CacheRequest wanted{.source = request.source,
                      .splits = splits_of(request),
                      .limits = {.quota = request.quota},
                      .check = HitCheck::sampled,
                      .threads = kThreads};
  if (request.order) wanted.order = request.order(*opened);
  if (request.on_usable && !(request.needs_order && wanted.order.empty())) {
    wanted.on_usable = [usable = request.on_usable, version = opened->manifest.version](const Path& folder) {
      usable({.folder = folder, .version = version});
    };
  }
  if (request.nodes) {
    placed.broadcast = std::make_unique<DatasetBroadcast>(cache, opened, wanted, *request.nodes);
    auto report = placed.broadcast->run(progress);
    if (report.ok() || is_final(report.status())) return report;
    placed.broadcast.reset();
  }
  return stage_dataset(cache, *opened, wanted, progress);
}

Status stage_into(const CacheFolder& cache, const OpenedDataset& opened, const PlaceRequest& request,
                  Progress& progress, PlacedDataset& placed) {
  if (!request.is_decided) {
    STOKER_ASSIGN_OR_RETURN(decision, decide(cache, {.quota = request.quota}, *opened, request));
    placed.note = decision.reason;
    if (!decision.is_copied) return {};
  }
  if (request.is_shared) STOKER_RETURN_IF_ERROR(share_cache(cache));
  STOKER_ASSIGN_OR_RETURN(lease, OwnLease::begin(cache, opened->manifest.version));
  STOKER_ASSIGN_OR_RETURN(report, stage_shards(cache, opened, request, progress, placed));
  placed.note = summary_of(report);
  if (!report.left.empty()) placed.note += format(" ({}: {})", report.left[0].shard, report.left[0].reason);
  placed.folder = report.folder;
  placed.copied = report.copied;
  placed.copied_bytes = report.copied_bytes;
  placed.received_bytes = report.received_bytes + report.shared_bytes;
  placed.hit_bytes = report.hit_bytes;
  placed.lease.emplace(std::move(lease));
  return {};
}

}  // namespace

std::string summary_of(const CacheReport& report) {
  std::vector<std::string> parts;
  if (report.copied > 0) {
    const auto rate =
        static_cast<std::uint64_t>(static_cast<double>(report.copied_bytes) / std::max(report.seconds, 1e-3));
    const auto of_them = [](std::uint64_t bytes, std::string_view from) {
      return bytes > 0 ? format(", {} of them from {}", rounded({bytes}), from) : std::string();
    };
    parts.push_back(format("{} copied ({}, {}/s{}{})", report.copied, rounded({report.copied_bytes}),
                           rounded({rate}), of_them(report.received_bytes, "other nodes"),
                           of_them(report.shared_bytes, "other users' caches")));
  }
  if (report.replaced > 0)
    parts.push_back(format("{} replaced, because the copy was damaged", report.replaced));
  if (report.hits > 0) parts.push_back(format("{} in the cache already", report.hits));
  if (!report.left.empty()) parts.push_back(format("{} left at the source", report.left.size()));
  return format("{}: {}", counted(report.shards, "shard"), join(parts, ", "));
}

Result<PlacedDataset> place_dataset(const PlaceRequest& request, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(found, dataset::open_dataset(request.source));
  const auto opened = std::make_shared<const dataset::OpenDataset>(std::move(found));
  PlacedDataset placed;
  placed.version = opened->manifest.version;
  const auto cache = CacheFolder::open(request.cache);
  const Status status = cache.ok() ? stage_into(*cache, opened, request, progress, placed) : cache.status();
  if (status.ok()) return placed;
  if (is_final(status)) return status;
  placed.note = format("read at the source: {}", status.message());
  return placed;
}

}  // namespace stoker::stage
