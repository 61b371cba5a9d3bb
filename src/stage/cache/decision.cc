#include "stage/cache/decision.h"

#include <algorithm>
#include <fcntl.h>
#include <vector>

#include "base/file.h"
#include "base/shared_filesystem.h"
#include "base/stopwatch.h"
#include "stage/cache/shared_caches.h"
#include "stoker/bytes.h"

namespace stoker::stage {
namespace {

constexpr std::uint64_t kProbe = 64u << 20;
constexpr std::uint64_t kProbePiece = 4u << 20;
constexpr double kProbe_s = 1;
// A forecast that is this much shorter decides; a smaller difference is noise.
constexpr double kClear = 0.95;

double seconds_for(double bytes, double rate) { return rate > 0 ? bytes / rate : 0; }

double slower_of(double a, double b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

PlaceDecision stay(PlaceDecision decision, std::string reason) {
  decision.is_copied = false;
  decision.reason = std::move(reason);
  return decision;
}

// Sizes and rates, without the contents of a cache in `folder`.
Result<PlaceFacts> measure_rates(const Path& folder, const Path& source,
                                 const std::vector<CacheableShard>& shards) {
  PlaceFacts facts;
  STOKER_ASSIGN_OR_RETURN(filesystem, shared_filesystem_at(source));
  facts.source_filesystem = filesystem;
  for (const CacheableShard& shard : shards) facts.bytes += shard.info->bytes;
  if (!shards.empty()) {
    const Path first = source / shards.front().info->file;
    STOKER_ASSIGN_OR_RETURN(rate, folder_exists(first) ? Result<double>(0.0) : measure_read_rate(first));
    facts.source_rate = rate;
  }
  // Writing is the slower direction of a disk, so the forecast is on the safe side.
  if (const auto rate = measure_write_rate(folder); rate.ok()) facts.write_rate = facts.disk_rate = *rate;
  return facts;
}

}  // namespace

PlaceDecision decide_place(const PlaceFacts& facts) {
  PlaceDecision decision;
  const auto bytes = static_cast<double>(facts.bytes);
  const std::uint64_t missing = facts.bytes - std::min(facts.bytes, facts.cached_bytes);
  const bool fits_in_memory = facts.bytes <= facts.memory_room;
  const double source = slower_of(facts.source_rate, facts.demand_rate);
  const std::uint64_t shared = std::min(missing, facts.shared_bytes);
  decision.staging_s =
      seconds_for(static_cast<double>(missing - shared), slower_of(facts.source_rate, facts.write_rate)) +
      seconds_for(static_cast<double>(shared), slower_of(facts.disk_rate, facts.write_rate));
  decision.local_epoch_s = seconds_for(bytes, slower_of(facts.disk_rate, facts.demand_rate));
  // The page cache holds what was read once, if it is large enough.
  decision.shared_epoch_s =
      fits_in_memory ? seconds_for(bytes, facts.demand_rate) : seconds_for(bytes, source);
  const double first_shared_s = seconds_for(bytes, source);

  if (facts.source_filesystem.empty()) return stay(decision, "the source is on a disk of this node");
  if (missing == 0) {
    decision.is_copied = true;
    decision.break_even_epoch = 1;
    decision.reason = "all of it is in the cache";
    return decision;
  }
  if (missing > facts.disk_room) {
    return stay(decision, format("{} is missing in the cache, and the disk has room for {}",
                                 rounded({missing}), rounded({facts.disk_room})));
  }
  if (facts.source_rate <= 0 || facts.disk_rate <= 0) return stay(decision, "the rates are unknown");
  const double gain_s = decision.shared_epoch_s - decision.local_epoch_s;
  const double left_s = decision.staging_s - (first_shared_s - decision.local_epoch_s);
  std::uint64_t epoch = 1;
  if (left_s > 0 && gain_s > 0) epoch += static_cast<std::uint64_t>(std::min(left_s / gain_s, 1e9)) + 1;
  if (left_s <= 0 || gain_s > 0) decision.break_even_epoch = epoch;

  if (fits_in_memory && gain_s <= 0 && left_s > 0)
    return stay(decision, "the page cache holds it after the first epoch");
  // A copy that has paid within the first epoch is made in any case.
  const bool is_clear =
      decision.break_even_epoch && decision.local_epoch_s <= kClear * decision.shared_epoch_s;
  if (left_s > 0 && !is_clear)
    return stay(decision, "the source is as fast as the disk, or as the training needs");
  if (*decision.break_even_epoch > facts.epochs) {
    return stay(decision, format("a copy pays only after epoch {}, and the job has {}",
                                 *decision.break_even_epoch, facts.epochs));
  }
  decision.is_copied = true;
  decision.reason = format("a copy pays after epoch {} of {}", *decision.break_even_epoch, facts.epochs);
  return decision;
}

Result<PlaceFacts> measure_facts(const CacheFolder& cache, const CacheLimits& limits, const Path& source,
                                 const std::vector<CacheableShard>& shards) {
  STOKER_ASSIGN_OR_RETURN(facts, measure_rates(cache.path(), source, shards));
  const SharedCaches others = SharedCaches::beside(cache);
  for (const CacheableShard& shard : shards) {
    if (check_cached(cache, shard, HitCheck::size).ok()) {
      facts.cached_bytes += shard.info->bytes;
    } else if (others.has(shard)) {
      facts.shared_bytes += shard.info->bytes;
    }
  }
  STOKER_ASSIGN_OR_RETURN(room, room_in(cache, limits));
  facts.disk_room = room;
  if (room < facts.bytes) {
    STOKER_ASSIGN_OR_RETURN(removable, removable_bytes(cache));
    facts.disk_room = std::min(facts.bytes, room + removable);
  }
  return facts;
}

Result<PlaceFacts> measure_facts(const Path& folder, const Path& source,
                                 const std::vector<CacheableShard>& shards) {
  STOKER_ASSIGN_OR_RETURN(facts, measure_rates(folder, source, shards));
  STOKER_ASSIGN_OR_RETURN(free, free_space(folder));
  facts.disk_room = free.value - std::min(free.value, CacheLimits().reserve.value);
  return facts;
}

Result<double> measure_read_rate(const Path& path) {
  STOKER_ASSIGN_OR_RETURN(file, File::open_regular(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  const std::uint64_t bytes = std::min(size, kProbe);
  const std::uint64_t begin = (size - bytes) / 2 / kProbePiece * kProbePiece;
  ::posix_fadvise(file.fd(), static_cast<off_t>(begin), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
  std::vector<std::byte> buffer(kProbePiece);
  const Stopwatch watch;
  std::uint64_t done = 0;
  while (done < bytes && watch.seconds() < kProbe_s) {
    const auto piece = std::span(buffer).first(std::min(kProbePiece, bytes - done));
    STOKER_RETURN_IF_ERROR(file.read_at(begin + done, piece));
    done += piece.size();
  }
  return static_cast<double>(done) / std::max(watch.seconds(), 1e-9);
}

Result<double> measure_write_rate(const Path& folder) {
  const Path path = folder / format(".stoker-probe-{}", random_name());
  STOKER_ASSIGN_OR_RETURN(file, File::create_new(path));
  // Without a name it disappears with this process.
  STOKER_RETURN_IF_ERROR(remove_file(path));
  const std::vector<std::byte> piece(kProbePiece, std::byte{1});
  const Stopwatch watch;
  std::uint64_t done = 0;
  while (done < kProbe && watch.seconds() < kProbe_s) {
    STOKER_RETURN_IF_ERROR(file.write(std::span<const std::byte>(piece)));
    done += piece.size();
  }
  STOKER_RETURN_IF_ERROR(file.sync());
  return static_cast<double>(done) / std::max(watch.seconds(), 1e-9);
}

}  // namespace stoker::stage
