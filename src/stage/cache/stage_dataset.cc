#include "stage/cache/stage_dataset.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>

#include "base/stopwatch.h"
#include "base/thread.h"
#include "stage/cache/first_shards.h"
#include "stage/cache/shared_caches.h"
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
        others_(SharedCaches::beside(cache)),
        progress_(progress) {
    report_.folder = folder_.path();
    report_.version = dataset.manifest.version;
  }

  Result<CacheReport> run() {
    const Stopwatch watch;
    STOKER_ASSIGN_OR_RETURN(shards, cacheable_shards(dataset_, request_.source, request_.splits));
    shards_ = ordered(std::move(shards), request_.order);
    report_.shards = shards_.size();
    const std::vector<std::uint64_t> sizes = bytes_of(shards_);
    total_bytes_ = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
    first_.emplace(
        sizes, request_.on_usable ? [this] { request_.on_usable(folder_.path()); } : std::function<void()>());
    STOKER_RETURN_IF_ERROR(note_use(cache_, report_.version, request_.source));
    for (int round = 1;; ++round) {
      STOKER_RETURN_IF_ERROR(folder_.publish());
      STOKER_RETURN_IF_ERROR(stage_shards());
      STOKER_ASSIGN_OR_RETURN(is_complete, check_complete(round == kMaxRounds));
      if (is_complete) break;
    }
    report_.seconds = watch.seconds();
    const MutexLock lock(mutex_);
    for (const auto& [i, reason] : left_) report_.left.push_back({shards_[i].info->file, reason});
    return report_;
  }

 private:
  Status stage_shards() {
    std::deque<std::size_t> unchecked;
    {
      const MutexLock lock(mutex_);
      for (std::size_t i = 0; i < shards_.size(); ++i) {
        if (!is_staged_.contains(i) && !left_.contains(i)) unchecked.push_back(i);
      }
    }
    // A reader that starts early gets no damaged copy.
    STOKER_ASSIGN_OR_RETURN(waiting, work_on(std::move(unchecked), &DatasetStaging::check));
    first_->cache_checked();
    while (!waiting.empty()) {
      const std::size_t count = waiting.size();
      STOKER_ASSIGN_OR_RETURN(rest, work_on(std::move(waiting), &DatasetStaging::stage));
      waiting = std::move(rest);
      if (waiting.size() == count) std::this_thread::sleep_for(kBusyPause);
    }
    return {};
  }

  // Calls `step` for each shard, on several threads. The shards for which it returned false, in order.
  Result<std::deque<std::size_t>> work_on(std::deque<std::size_t> shards,
                                          Result<bool> (DatasetStaging::*step)(std::size_t)) {
    const std::size_t count = std::min<std::size_t>(std::max(request_.threads, 1), shards.size());
    Work work{.waiting = std::move(shards)};
    std::vector<Thread> workers;
    for (std::size_t i = 0; i < count; ++i) {
      workers.emplace_back([this, &work, step](const StopToken&) {
        while (const std::optional<std::size_t> shard = next(work)) {
          const Result<bool> is_done = (this->*step)(*shard);
          const MutexLock lock(mutex_);
          if (!is_done.ok() && work.problem.ok()) work.problem = is_done.status();
          if (is_done.ok() && !*is_done) work.left.push_back(*shard);
        }
      });
    }
    for (Thread& worker : workers) worker.join();
    STOKER_RETURN_IF_ERROR(work.problem);
    std::ranges::sort(work.left);
    return std::move(work.left);
  }

  struct Work {
    std::deque<std::size_t> waiting;
    std::deque<std::size_t> left = {};
    Status problem = {};
  };

  std::optional<std::size_t> next(Work& work) {
    const MutexLock lock(mutex_);
    if (work.waiting.empty() || !work.problem.ok()) return std::nullopt;
    const std::size_t i = work.waiting.front();
    work.waiting.pop_front();
    return i;
  }

  // False if the shard is not in the cache.
  Result<bool> check(std::size_t i) {
    const CacheableShard& shard = shards_[i];
    if (progress_.stop_requested()) return cancelled("stoker cache: interrupted");
    if (!is_cacheable(shard)) return leave(i, "has files beside it");
    const Status cached = check_cached(cache_, shard, request_.check);
    if (cached.ok()) return count_hit(i);
    if (cached.code() != Code::not_found) STOKER_RETURN_IF_ERROR(folder_.link_to_source(shard));
    return false;
  }

  // False if another process is copying the shard.
  Result<bool> stage(std::size_t i) {
    const CacheableShard& shard = shards_[i];
    if (progress_.stop_requested()) return cancelled("stoker cache: interrupted");
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
    std::uint64_t reported = 0;
    const auto progress = [&](std::uint64_t bytes) -> Status {
      if (progress_.stop_requested()) return cancelled("stoker cache: interrupted");
      if (room_lock.owns_lock()) room_lock.unlock();
      if (since_refresh.seconds() > kRefresh_s) {
        STOKER_RETURN_IF_ERROR(lease.refresh());
        since_refresh.lap();
      }
      report_progress(bytes);
      reported += bytes;
      return {};
    };
    auto copied = others_.copy(cache_, shard, progress);
    const bool is_shared = copied.has_value();
    if (!copied) {
      done_bytes_ -= reported;
      copied = copy_shard(cache_, shard, request_.source / shard.info->file, progress);
    }
    STOKER_RETURN_IF_ERROR(copied->source);
    if (!copied->cache.ok()) return leave(i, std::string(copied->cache.message()));
    STOKER_RETURN_IF_ERROR(folder_.link_to_cache(shard));
    {
      const MutexLock lock(mutex_);
      is_staged_.insert(i);
      report_.copied += 1;
      report_.copied_bytes += shard.info->bytes;
      report_.shared_bytes += is_shared ? shard.info->bytes : 0;
      report_.replaced += is_damaged ? 1 : 0;
    }
    return settled(i);
  }

  Result<bool> count_hit(std::size_t i) {
    const CacheableShard& shard = shards_[i];
    STOKER_RETURN_IF_ERROR(folder_.link_to_cache(shard));
    report_progress(shard.info->bytes);
    {
      const MutexLock lock(mutex_);
      const bool is_new = is_staged_.insert(i).second;
      report_.hits += is_new ? 1 : 0;
      report_.hit_bytes += is_new ? shard.info->bytes : 0;
    }
    return settled(i);
  }

  Result<bool> leave(std::size_t i, std::string reason) {
    report_progress(shards_[i].info->bytes);
    {
      const MutexLock lock(mutex_);
      left_.emplace(i, std::move(reason));
    }
    return settled(i);
  }

  bool settled(std::size_t i) {
    first_->settled(i);
    return true;
  }

  void report_progress(std::uint64_t bytes) {
    const std::uint64_t done = done_bytes_ += bytes;
    progress_.report({.done = done, .total = total_bytes_, .unit = "bytes", .bytes = {done}});
  }

  // Whether what was staged is still there: another process may have removed it before this one had its
  // lease. After the last round, readers find a missing shard at the source.
  Result<bool> check_complete(bool is_last) {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      if (!is_staged_.contains(i) || folder_.is_cached(shards_[i])) continue;
      is_staged_.erase(i);
      if (!is_last) continue;
      STOKER_RETURN_IF_ERROR(folder_.link_to_source(shards_[i]));
      left_.emplace(i, kRemovedByOthers);
    }
    if (is_last && !folder_.is_published())
      return unavailable("{}: other processes remove it", folder_.path());
    return folder_.is_published() && is_staged_.size() + left_.size() == shards_.size();
  }

  const CacheFolder& cache_;
  const dataset::OpenDataset& dataset_;
  const CacheRequest& request_;
  const DatasetFolder folder_;
  const SharedCaches others_;
  std::vector<CacheableShard> shards_;  // that were requested
  Progress& progress_;
  std::optional<FirstShards> first_;
  std::uint64_t total_bytes_ = 0;
  std::atomic<std::uint64_t> done_bytes_{0};

  std::mutex room_mutex_;

  Mutex mutex_;
  std::set<std::size_t> is_staged_ STOKER_GUARDED_BY(mutex_);
  std::map<std::size_t, std::string> left_ STOKER_GUARDED_BY(mutex_);
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
