#include "stage/broadcast/broadcast_dataset.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>

#include "base/stopwatch.h"
#include "base/thread.h"
#include "stage/cache/first_shards.h"
#include "stage/cache/shared_caches.h"

namespace stoker::stage {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostPieces = 65'536;
constexpr int kPublishers = 4;
constexpr double kRefreshLeases_s = 20;
constexpr Duration kStep = 50ms;

}  // namespace

class DatasetBroadcast::Impl final : public PieceStore {
 public:
  Impl(const CacheFolder& cache, std::shared_ptr<const dataset::OpenDataset> opened,
       const CacheRequest& request, BroadcastNodes nodes)
      : cache_(cache),
        dataset_(std::move(opened)),
        request_(request),
        nodes_(std::move(nodes)),
        folder_(cache_, *dataset_, request_.source),
        others_(SharedCaches::beside(cache_)) {}

  ~Impl() override {
    if (swarm_) nodes_.server->remove(*swarm_);
    swarm_.reset();
  }

  Result<CacheReport> run(Progress& progress) {
    const Stopwatch watch;
    progress_ = &progress;
    STOKER_RETURN_IF_ERROR(remove_leftovers(cache_).status());
    STOKER_ASSIGN_OR_RETURN(shards, cacheable_shards(*dataset_, request_.source, request_.splits));
    begin(ordered(std::move(shards), request_.order));
    STOKER_RETURN_IF_ERROR(note_use(cache_, report_.version, request_.source));
    STOKER_RETURN_IF_ERROR(folder_.publish());
    std::vector<Thread> publishers;
    for (int i = 0; i < kPublishers; ++i)
      publishers.emplace_back([this](const StopToken& stop) { publish_completed(stop); });
    swarm_ = std::make_unique<Swarm>(plan_, *this);
    nodes_.server->add(*swarm_);
    for (std::uint32_t i = 0; i < shards_.size(); ++i) {
      if (progress.stop_requested()) return cancelled("stoker stage: interrupted");
      check(i);
    }
    first_->cache_checked();
    swarm_->joined();
    const Status ended = exchange(progress);
    for (Thread& thread : publishers) thread.request_stop();
    {
      const MutexLock lock(mutex_);
      completed_ready_.notify_all();
    }
    publishers.clear();
    progress_ = nullptr;
    STOKER_RETURN_IF_ERROR(ended);
    return finish(watch);
  }

  // From here on calls of the swarm, from its threads.

  Status fetch(std::uint32_t number) override {
    const ShardPiece& piece = plan_.pieces[number];
    const CacheableShard& shard = shards_[piece.shard];
    const Writing writing(*this, number);
    PartialShard* const partial = writing.partial();
    if (!partial) return unavailable("{}: is not copied", shard.info->file);
    const auto file = open_source(shard, request_.source / shard.info->file);
    if (!file.ok()) return failed(piece.shard, file.status());
    std::vector<std::byte> buffer;
    for (std::uint64_t offset = 0; offset < piece.bytes; offset += dataset::kHashBlock) {
      if (is_interrupted()) return cancelled("stoker stage: interrupted");
      buffer.resize(std::min(dataset::kHashBlock, piece.bytes - offset));
      const std::uint64_t at = piece.offset + offset;
      if (const Status read = file->read_at(at, buffer); !read.ok()) return failed(piece.shard, read);
      Status right = check_block(shard, at / dataset::kHashBlock, buffer);
      if (!right.ok()) return std::move(right).with_context((request_.source / shard.info->file).string());
      const Status written = partial->write(at, buffer);
      if (!written.ok()) return leave(piece.shard, written);
      report_progress(buffer.size());
    }
    complete(number);
    return {};
  }

  Status write(std::uint32_t number, std::uint64_t offset, std::span<const std::byte> bytes) override {
    const ShardPiece& piece = plan_.pieces[number];
    const CacheableShard& shard = shards_[piece.shard];
    const Writing writing(*this, number);
    PartialShard* const partial = writing.partial();
    if (!partial) return unavailable("{}: is not copied", shard.info->file);
    const std::uint64_t at = piece.offset + offset;
    STOKER_RETURN_IF_ERROR(check_block(shard, at / dataset::kHashBlock, bytes));
    const Status written = partial->write(at, bytes);
    if (!written.ok()) return leave(piece.shard, written);
    report_progress(bytes.size());
    return {};
  }

  void written(std::uint32_t number) override { complete(number); }

  void unreachable(std::uint32_t number) override {
    const std::uint32_t shard = plan_.pieces[number].shard;
    Status reason;
    {
      const MutexLock lock(mutex_);
      reason = states_[shard].problem;
    }
    (void)leave(shard, reason.ok() ? unavailable("no node could read it") : reason);
  }

  Status read(std::uint32_t number, std::uint64_t offset, std::span<std::byte> out) override {
    const ShardPiece& piece = plan_.pieces[number];
    const CacheableShard& shard = shards_[piece.shard];
    const std::uint64_t at = piece.offset + offset;
    if (read_copy(path_of_copy(piece.shard), shard, at, out).ok()) return {};
    return read_copy(cache_.shard(shard.key), shard, at, out);  // published meanwhile
  }

 private:
  enum class State {
    waiting,   ///< its turn has not come, or a different process copies it
    partial,   ///< being copied
    complete,  ///< all pieces are there
    here,      ///< in the cache
    left,      ///< at the source
  };
  struct ShardState {
    State state = State::waiting;
    bool is_copied = false;  ///< by this process
    std::shared_ptr<PartialShard> partial = nullptr;
    Path path = {};  ///< of it
    std::optional<record::WorkLease> lease = std::nullopt;
    std::set<std::uint32_t> missing = {};  ///< pieces
    int writers = 0;
    PieceRange pieces = {};
    Status problem = {};  ///< of the last reading
  };

  void begin(std::vector<CacheableShard> shards) {
    shards_ = std::move(shards);
    report_.folder = folder_.path();
    report_.version = dataset_->manifest.version;
    report_.shards = shards_.size();
    const std::vector<std::uint64_t> sizes = bytes_of(shards_);
    total_bytes_ = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
    first_.emplace(
        sizes, request_.on_usable ? [this] { request_.on_usable(folder_.path()); } : std::function<void()>());
    plan_ = {.node = nodes_.node,
             .addresses = nodes_.addresses,
             .secret = nodes_.secret,
             .dataset = report_.version,
             .pieces = divide_shards(sizes, {dataset::kHashBlock}, kMostPieces),
             .rate = nodes_.rate,
             .limits = nodes_.limits};
    if (request_.on_usable) {
      plan_.limits.urgent = static_cast<std::uint32_t>(std::ranges::count_if(
          plan_.pieces, [&](const ShardPiece& piece) { return piece.shard < first_->count(); }));
    }
    const MutexLock lock(mutex_);
    states_.resize(shards_.size());
    for (std::uint32_t piece = 0; piece < plan_.pieces.size(); ++piece) {
      ShardState& state = states_[plan_.pieces[piece].shard];
      if (state.pieces.count++ == 0) state.pieces.first = piece;
      state.missing.insert(piece);
    }
  }

  // The copy that is being written, or the one in the cache.
  Path path_of_copy(std::uint32_t i) const {
    const MutexLock lock(mutex_);
    return states_[i].partial ? states_[i].path : cache_.shard(shards_[i].key);
  }

  static Status read_copy(const Path& path, const CacheableShard& shard, std::uint64_t at,
                          std::span<std::byte> out) {
    STOKER_ASSIGN_OR_RETURN(file, codec::ShardFile::open(path, shard.parts));
    return file.read_at(at, out);
  }

  // While a piece is written, its shard is not published.
  class Writing {
   public:
    Writing(Impl& impl, std::uint32_t piece) : impl_(impl), shard_(impl.plan_.pieces[piece].shard) {
      const MutexLock lock(impl_.mutex_);
      ShardState& state = impl_.states_[shard_];
      if (state.state != State::partial || !state.missing.contains(piece)) return;
      partial_ = state.partial;
      state.writers += 1;
    }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;
    ~Writing() {
      if (!partial_) return;
      const MutexLock lock(impl_.mutex_);
      impl_.states_[shard_].writers -= 1;
      impl_.check_complete(shard_);
    }
    /// Null if the piece is not missing here.
    PartialShard* partial() const { return partial_.get(); }

   private:
    Impl& impl_;
    const std::uint32_t shard_;
    std::shared_ptr<PartialShard> partial_;
  };

  bool is_interrupted() const {
    Progress* const progress = progress_;
    return progress != nullptr && progress->stop_requested();
  }

  // Finds the shard in the cache. No reader gets a damaged one.
  void check(std::uint32_t i) {
    const CacheableShard& shard = shards_[i];
    if (!is_cacheable(shard)) return (void)leave(i, unavailable("has files beside it"));
    const Status cached = check_cached(cache_, shard, request_.check);
    if (cached.ok()) return found(i);
    if (cached.code() == Code::not_found) return;
    if (const Status linked = folder_.link_to_source(shard); !linked.ok()) (void)leave(i, linked);
  }

  bool is_waiting(std::uint32_t i) const {
    const MutexLock lock(mutex_);
    return states_[i].state == State::waiting;
  }

  // Finds the shard in the cache, or begins to copy it.
  void open(std::uint32_t i) {
    const CacheableShard& shard = shards_[i];
    auto lease = lease_shard(cache_, shard.key);
    if (lease.status().code() == Code::exists) return;  // a different process copies it
    if (!lease.ok()) return (void)leave(i, lease.status());
    const Status cached = check_cached(cache_, shard, request_.check);
    if (cached.ok()) return found(i);
    if (cached.code() != Code::not_found) {
      if (Status removed = remove_shard(cache_, shard.key); !removed.ok()) return (void)leave(i, removed);
      report_.replaced += 1;
    }
    const auto evicted = make_room(cache_, request_.limits, shard.info->bytes);
    if (!evicted.ok()) return (void)leave(i, evicted.status());
    report_.evicted.shards += evicted->shards;
    report_.evicted.bytes += evicted->bytes;
    if (copy_from_others(i)) return found(i);
    auto partial = PartialShard::create(cache_, shard);
    if (!partial.ok()) return (void)leave(i, partial.status());
    bool is_empty = false;
    PieceRange pieces;
    {
      const MutexLock lock(mutex_);
      ShardState& state = states_[i];
      state.state = State::partial;
      state.is_copied = true;
      state.path = partial->path();
      state.partial = std::make_shared<PartialShard>(std::move(*partial));
      state.lease.emplace(std::move(*lease));
      pieces = state.pieces;
      is_empty = state.missing.empty();
      check_complete(i);
    }
    if (!is_empty) swarm_->wants(pieces);
  }

  // From the cache of a different user of this node.
  bool copy_from_others(std::uint32_t i) {
    const CacheableShard& shard = shards_[i];
    Stopwatch since_refresh;
    const auto progress = [&](std::uint64_t) -> Status {
      if (is_interrupted()) return cancelled("stoker stage: interrupted");
      if (since_refresh.seconds() > kRefreshLeases_s) {
        STOKER_RETURN_IF_ERROR(refresh_leases());
        since_refresh.lap();
      }
      return {};
    };
    const auto copied = others_.copy(cache_, shard, progress);
    if (!copied || !copied->source.ok() || !copied->cache.ok()) return false;
    const MutexLock lock(mutex_);
    states_[i].is_copied = true;
    report_.shared_bytes += shard.info->bytes;
    return true;
  }

  void found(std::uint32_t i) {
    if (const Status linked = folder_.link_to_cache(shards_[i]); !linked.ok()) return (void)leave(i, linked);
    report_progress(shards_[i].info->bytes);
    PieceRange pieces;
    {
      const MutexLock lock(mutex_);
      states_[i].state = State::here;
      pieces = states_[i].pieces;
    }
    first_->settled(i);
    swarm_->has(pieces);
  }

  // The error, which does not mean that the source is damaged.
  Status leave(std::uint32_t i, const Status& reason) {
    PieceRange pieces;
    std::shared_ptr<PartialShard> removed;
    std::optional<record::WorkLease> released;
    {
      const MutexLock lock(mutex_);
      ShardState& state = states_[i];
      if (state.state == State::left) return unavailable("{}", reason.message());
      state.state = State::left;
      state.problem = reason;
      removed = std::exchange(state.partial, nullptr);
      if (state.lease) released.emplace(std::move(*state.lease));
      state.lease.reset();
      pieces = state.pieces;
    }
    first_->settled(i);
    swarm_->gives_up(pieces);
    return unavailable("{}", reason.message());
  }

  Status failed(std::uint32_t i, Status problem) {
    if (problem.code() == Code::corrupt) return problem;
    const MutexLock lock(mutex_);
    states_[i].problem = problem;
    return problem;
  }

  void complete(std::uint32_t number) {
    const std::uint32_t i = plan_.pieces[number].shard;
    const MutexLock lock(mutex_);
    ShardState& state = states_[i];
    state.missing.erase(number);
    check_complete(i);
  }

  void check_complete(std::uint32_t i) STOKER_REQUIRES_LOCK(mutex_) {
    if (states_[i].state != State::partial || !states_[i].missing.empty() || states_[i].writers > 0) return;
    states_[i].state = State::complete;
    completed_.push_back(i);
    completed_ready_.notify_one();
  }

  // Makes complete shards visible.
  void publish_completed(const StopToken& stop) {
    for (;;) {
      std::uint32_t i = 0;
      std::shared_ptr<PartialShard> partial;
      {
        const MutexLock lock(mutex_);
        while (completed_.empty() && !stop.stop_requested())
          completed_ready_.wait(mutex_, Deadline::after(1s));
        if (completed_.empty()) return;
        i = completed_.front();
        completed_.pop_front();
        partial = states_[i].partial;
      }
      Status status = std::move(*partial).publish();
      if (status.ok()) status = folder_.link_to_cache(shards_[i]);
      if (!status.ok()) {
        (void)leave(i, status);
        continue;
      }
      first_->settled(i);
      std::optional<record::WorkLease> released;
      const MutexLock lock(mutex_);
      ShardState& state = states_[i];
      state.state = State::here;
      state.partial.reset();
      if (state.lease) released.emplace(std::move(*state.lease));
      state.lease.reset();
    }
  }

  Status exchange(Progress& progress) {
    Stopwatch since_refresh;
    for (;;) {
      if (progress.stop_requested()) return cancelled("stoker stage: interrupted");
      if (since_refresh.seconds() > kRefreshLeases_s) {
        STOKER_RETURN_IF_ERROR(refresh_leases());
        since_refresh.lap();
      }
      std::vector<std::uint32_t> waiting;
      std::size_t moving = 0;
      {
        const MutexLock lock(mutex_);
        for (std::uint32_t i = 0; i < states_.size(); ++i) {
          if (states_[i].state == State::waiting) waiting.push_back(i);
          moving += states_[i].state == State::partial || states_[i].state == State::complete ? 1 : 0;
        }
      }
      if (waiting.empty() && moving == 0) return {};
      open_next(waiting);
      STOKER_RETURN_IF_ERROR(swarm_->wait(Deadline::after(kStep)));
    }
  }

  // Allocating the space of a shard takes time: shards that this node is to read come first. As long as ranks
  // wait, only the next ones in the order of the training follow.
  void open_next(const std::vector<std::uint32_t>& waiting) {
    for (const std::uint32_t piece : swarm_->early_grants()) {
      if (is_waiting(plan_.pieces[piece].shard)) open(plan_.pieces[piece].shard);
    }
    for (const std::uint32_t i : waiting) {
      if (is_interrupted() || (first_->is_awaited() && swarm_->left() >= plan_.limits.allocated)) return;
      if (is_waiting(i)) open(i);
    }
  }

  Status refresh_leases() const {
    const MutexLock lock(mutex_);
    for (const ShardState& state : states_) {
      if (state.lease) STOKER_RETURN_IF_ERROR(state.lease->refresh());
    }
    return {};
  }

  Result<CacheReport> finish(const Stopwatch& watch) {
    const SwarmTraffic traffic = swarm_->traffic();
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const ShardState& state = states_[i];
      const dataset::ShardInfo& info = *shards_[i].info;
      const bool is_removed = state.state == State::here && !folder_.is_cached(shards_[i]);
      if (is_removed) STOKER_RETURN_IF_ERROR(folder_.link_to_source(shards_[i]));
      if (state.state == State::left) {
        report_.left.push_back({info.file, std::string(state.problem.message())});
      } else if (is_removed) {
        report_.left.push_back({info.file, std::string(kRemovedByOthers)});
      } else if (state.is_copied) {
        report_.copied += 1;
        report_.copied_bytes += info.bytes;
      } else {
        report_.hits += 1;
        report_.hit_bytes += info.bytes;
      }
    }
    report_.received_bytes = traffic.received_bytes;
    report_.seconds = watch.seconds();
    return report_;
  }

  void report_progress(std::uint64_t bytes) {
    const std::uint64_t done = done_bytes_ += bytes;
    Progress* const progress = progress_;
    if (progress) progress->report({.done = done, .total = total_bytes_, .unit = "bytes", .bytes = {done}});
  }

  const CacheFolder cache_;
  const std::shared_ptr<const dataset::OpenDataset> dataset_;
  const CacheRequest request_;
  const BroadcastNodes nodes_;
  const DatasetFolder folder_;
  const SharedCaches others_;
  std::atomic<Progress*> progress_{nullptr};
  std::vector<CacheableShard> shards_;
  SwarmPlan plan_;
  std::optional<FirstShards> first_;
  std::uint64_t total_bytes_ = 0;
  std::atomic<std::uint64_t> done_bytes_{0};
  CacheReport report_;  // of the thread that calls run()

  mutable Mutex mutex_;
  std::vector<ShardState> states_ STOKER_GUARDED_BY(mutex_);
  std::deque<std::uint32_t> completed_ STOKER_GUARDED_BY(mutex_);
  Condition completed_ready_;
  std::unique_ptr<Swarm> swarm_;
};

DatasetBroadcast::DatasetBroadcast(const CacheFolder& cache,
                                   std::shared_ptr<const dataset::OpenDataset> dataset,
                                   const CacheRequest& request, BroadcastNodes nodes)
    : impl_(std::make_unique<Impl>(cache, std::move(dataset), request, std::move(nodes))) {}
DatasetBroadcast::~DatasetBroadcast() = default;
Result<CacheReport> DatasetBroadcast::run(Progress& progress) { return impl_->run(progress); }

}  // namespace stoker::stage
