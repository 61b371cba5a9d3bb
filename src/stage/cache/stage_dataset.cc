#include "stage/cache/stage_dataset.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "base/stopwatch.h"
#include "base/thread.h"
#include "stage/cache/use_lease.h"

namespace stoker::stage {
namespace {

// Another process removes the dataset, or a shard, at most now and then.
constexpr int kMaxRounds = 5;
constexpr double kRefresh_s = 20;
constexpr auto kBusyPause = std::chrono::milliseconds(20);

// One staging of one dataset.
class DatasetStaging {
 public:
  DatasetStaging(const CacheFolder& cache, const dataset::OpenDataset& dataset, const CacheRequest& request,
                 Progress& progress)
      : cache_(cache),
        dataset_(dataset),
        request_(request),
        folder_(cache, dataset, request.source),
        progress_(progress) {
    report_.folder = folder_.path();
    report_.version = dataset.manifest.version;
  }

  Result<CacheReport> run() {
    const Stopwatch watch;
    STOKER_ASSIGN_OR_RETURN(shards, cacheable_shards(dataset_, request_.source, request_.splits));
    shards_ = std::move(shards);
    report_.shards = shards_.size();
    for (const CacheableShard& shard : shards_) total_bytes_ += shard.info->bytes;
    STOKER_RETURN_IF_ERROR(note_use(cache_, report_.version, request_.source));
    for (int round = 1;; ++round) {
      STOKER_RETURN_IF_ERROR(folder_.publish());
      STOKER_RETURN_IF_ERROR(stage_shards());
      if (is_complete()) break;
      if (round == kMaxRounds) return unavailable("{}: other processes remove its shards", folder_.path());
    }
    report_.seconds = watch.seconds();
    const MutexLock lock(mutex_);
    for (const auto& [i, reason] : left_) report_.left.push_back({shards_[i].info->file, reason});
    return report_;
  }

 private:
  Status stage_shards() {
    std::size_t count = 0;
    {
      const MutexLock lock(mutex_);
      waiting_.clear();
      for (std::size_t i = 0; i < shards_.size(); ++i) {
        if (!is_staged_.contains(i) && !left_.contains(i)) waiting_.push_back(i);
      }
      count = std::min<std::size_t>(std::max(request_.threads, 1), waiting_.size());
    }
    std::vector<Thread> workers;
    for (std::size_t i = 0; i < count; ++i) {
      workers.emplace_back([this](const StopToken&) { work(); });
    }
    for (Thread& worker : workers) worker.join();
    const MutexLock lock(mutex_);
    return problem_;
  }

  void work() {
    while (const std::optional<std::size_t> i = next()) {
      const Result<bool> is_done = stage(*i);
      if (!is_done.ok()) {
        const MutexLock lock(mutex_);
        if (problem_.ok()) problem_ = is_done.status();
        return;
      }
      if (*is_done) continue;
      {
        const MutexLock lock(mutex_);
        waiting_.push_back(*i);  // another process copies it: other shards first
      }
      std::this_thread::sleep_for(kBusyPause);
    }
  }

  std::optional<std::size_t> next() {
    const MutexLock lock(mutex_);
    if (waiting_.empty() || !problem_.ok()) return std::nullopt;
    const std::size_t i = waiting_.front();
    waiting_.pop_front();
    return i;
  }

  // False if another process is copying the shard.
  Result<bool> stage(std::size_t i) {
    const CacheableShard& shard = shards_[i];
    if (progress_.stop_requested()) return cancelled("stoker cache: interrupted");
    if (!is_cacheable(shard)) return leave(i, "has files beside it");
    if (check_cached(cache_, shard, request_.check).ok()) return count_hit(i);
    const auto lease = lease_shard(cache_, shard.key);
    if (!lease.ok()) {
      if (lease.status().code() == Code::exists) return false;
      return leave(i, std::string(lease.status().message()));
    }
    const Status cached = check_cached(cache_, shard, request_.check);
    if (cached.ok()) return count_hit(i);
    const bool is_damaged = cached.code() != Code::not_found;
    if (is_damaged) {
      if (const Status removed = remove_shard(cache_, shard.key); !removed.ok())
        return leave(i, std::string(removed.message()));
    }
    return copy(i, *lease, is_damaged);
  }

  Result<bool> copy(std::size_t i, const record::WorkLease& lease, bool is_damaged) {
    const CacheableShard& shard = shards_[i];
    // One at a time until its space is allocated: the space of the next one is computed with it.
    std::unique_lock<std::mutex> room_lock(room_mutex_);
    const auto evicted = make_room(cache_, request_.limits, shard.info->bytes);
    if (!evicted.ok()) return leave(i, std::string(evicted.status().message()));
    report_.evicted.shards += evicted->shards;
    report_.evicted.bytes += evicted->bytes;
    Stopwatch since_refresh;
    const auto progress = [&](std::uint64_t bytes) -> Status {
      if (progress_.stop_requested()) return cancelled("stoker cache: interrupted");
      if (room_lock.owns_lock()) room_lock.unlock();
      if (since_refresh.seconds() > kRefresh_s) {
        STOKER_RETURN_IF_ERROR(lease.refresh());
        since_refresh.lap();
      }
      report_progress(bytes);
      return {};
    };
    const CopyResult copied = copy_shard(cache_, shard, request_.source / shard.info->file, progress);
    STOKER_RETURN_IF_ERROR(copied.source);
    if (!copied.cache.ok()) return leave(i, std::string(copied.cache.message()));
    STOKER_RETURN_IF_ERROR(folder_.link_to_cache(shard));
    const MutexLock lock(mutex_);
    is_staged_.insert(i);
    report_.copied += 1;
    report_.copied_bytes += shard.info->bytes;
    report_.replaced += is_damaged ? 1 : 0;
    return true;
  }

  Result<bool> count_hit(std::size_t i) {
    const CacheableShard& shard = shards_[i];
    STOKER_RETURN_IF_ERROR(folder_.link_to_cache(shard));
    report_progress(shard.info->bytes);
    const MutexLock lock(mutex_);
    if (is_staged_.insert(i).second) {
      report_.hits += 1;
      report_.hit_bytes += shard.info->bytes;
    }
    return true;
  }

  Result<bool> leave(std::size_t i, std::string reason) {
    report_progress(shards_[i].info->bytes);
    const MutexLock lock(mutex_);
    left_.emplace(i, std::move(reason));
    return true;
  }

  void report_progress(std::uint64_t bytes) {
    const std::uint64_t done = done_bytes_ += bytes;
    progress_.report({.done = done, .total = total_bytes_, .unit = "bytes", .bytes = {done}});
  }

  // Whether what was staged is still there: another process may have removed it before this one had its
  // lease.
  bool is_complete() {
    const MutexLock lock(mutex_);
    std::erase_if(is_staged_, [&](std::size_t i) { return !folder_.has(shards_[i]); });
    return folder_.is_published() && is_staged_.size() + left_.size() == shards_.size();
  }

  const CacheFolder& cache_;
  const dataset::OpenDataset& dataset_;
  const CacheRequest& request_;
  const DatasetFolder folder_;
  std::vector<CacheableShard> shards_;  // that were requested
  Progress& progress_;
  std::uint64_t total_bytes_ = 0;
  std::atomic<std::uint64_t> done_bytes_{0};

  std::mutex room_mutex_;

  Mutex mutex_;
  std::deque<std::size_t> waiting_ STOKER_GUARDED_BY(mutex_);
  std::set<std::size_t> is_staged_ STOKER_GUARDED_BY(mutex_);
  std::map<std::size_t, std::string> left_ STOKER_GUARDED_BY(mutex_);
  Status problem_ STOKER_GUARDED_BY(mutex_);
  CacheReport report_;
};

}  // namespace

Result<CacheReport> stage_dataset(const CacheFolder& cache, const dataset::OpenDataset& dataset,
                                  const CacheRequest& request, Progress& progress) {
  const auto lease = OwnLease::begin(cache, dataset.manifest.version);
  STOKER_RETURN_IF_ERROR(lease.status());
  STOKER_RETURN_IF_ERROR(remove_leftovers(cache).status());
  CacheRequest resolved = request;
  std::error_code error;
  // The folder of the cache itself: a link to it would lead to itself.
  if (std::filesystem::equivalent(request.source, cache.dataset(dataset.manifest.version), error)) {
    STOKER_ASSIGN_OR_RETURN(use, read_use(cache, dataset.manifest.version));
    resolved.source = use.source;
  }
  return DatasetStaging(cache, dataset, resolved, progress).run();
}

}  // namespace stoker::stage
