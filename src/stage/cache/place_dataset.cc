#include "stage/cache/place_dataset.h"

#include <algorithm>

#include "base/language/counted.h"
#include "stage/cache/decision.h"

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

Status stage_into(const CacheFolder& cache, const dataset::OpenDataset& opened, const PlaceRequest& request,
                  Progress& progress, PlacedDataset& placed) {
  const CacheLimits limits{.quota = request.quota};
  if (!request.is_decided) {
    STOKER_ASSIGN_OR_RETURN(decision, decide(cache, limits, opened, request));
    placed.note = decision.reason;
    if (!decision.is_copied) return {};
  }
  STOKER_ASSIGN_OR_RETURN(lease, OwnLease::begin(cache, opened.manifest.version));
  STOKER_ASSIGN_OR_RETURN(report, stage_dataset(cache, opened,
                                                {.source = request.source,
                                                 .splits = splits_of(request),
                                                 .limits = limits,
                                                 .check = HitCheck::sampled,
                                                 .threads = kThreads},
                                                progress));
  placed.note = summary_of(report);
  if (!report.left.empty()) placed.note += format(" ({}: {})", report.left[0].shard, report.left[0].reason);
  placed.folder = report.folder;
  placed.copied = report.copied;
  placed.copied_bytes = report.copied_bytes;
  placed.lease.emplace(std::move(lease));
  return {};
}

}  // namespace

std::string summary_of(const CacheReport& report) {
  std::vector<std::string> parts;
  if (report.copied > 0) {
    const auto rate =
        static_cast<std::uint64_t>(static_cast<double>(report.copied_bytes) / std::max(report.seconds, 1e-3));
    parts.push_back(
        format("{} copied ({}, {}/s)", report.copied, rounded({report.copied_bytes}), rounded({rate})));
  }
  if (report.replaced > 0)
    parts.push_back(format("{} replaced, because the copy was damaged", report.replaced));
  if (report.hits > 0) parts.push_back(format("{} in the cache already", report.hits));
  if (!report.left.empty()) parts.push_back(format("{} left at the source", report.left.size()));
  return format("{}: {}", counted(report.shards, "shard"), join(parts, ", "));
}

Result<PlacedDataset> place_dataset(const PlaceRequest& request, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(opened, dataset::open_dataset(request.source));
  PlacedDataset placed;
  placed.version = opened.manifest.version;
  const auto cache = CacheFolder::open(request.cache);
  const Status status = cache.ok() ? stage_into(*cache, opened, request, progress, placed) : cache.status();
  if (status.ok()) return placed;
  if (is_final(status)) return status;
  placed.note = format("read at the source: {}", status.message());
  return placed;
}

}  // namespace stoker::stage
