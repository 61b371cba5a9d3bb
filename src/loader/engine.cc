#include "loader/engine.h"

#include <algorithm>
#include <iterator>
#include <time.h>

namespace stoker::loader {
namespace {

double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Small enough that all threads share the first batch, large enough that threads rarely lock.
std::size_t piece_size(const LoaderOptions& options) {
  const std::size_t most = options.content == Content::images ? 32 : 512;
  return std::clamp<std::size_t>(options.batch / (2 * std::size_t{options.threads}), 1, most);
}

// Reading the clock costs about 25 ns: negligible for a photograph, much for a thumbnail.
std::uint32_t clock_period(const dataset::ShardSource& source) {
  constexpr std::uint64_t kSmall = 16'384;
  std::uint64_t bytes = 0;
  for (const dataset::ShardInfo& shard : source.split().shards) bytes += shard.bytes;
  return bytes / source.samples().size() < kSmall ? 8 : 1;
}

constexpr std::size_t kMaxListed = 1000;

}  // namespace

Loader::Engine::Engine(const dataset::ShardSource& source, const LoaderOptions& options, Schedule schedule,
                       Contents contents, std::optional<BatchMixer> mixer)
    : source_(source),
      options_(options),
      contents_(std::move(contents)),
      mixer_(std::move(mixer)),
      piece_(piece_size(options)),
      cache_(source.samples().size(), options.cache),
      memory_(ShardMemory::create(source, options.resident)),
      state_(schedule.start()),
      schedule_(std::move(schedule)) {}

Loader::Engine::~Engine() {
  cancel();
  for (auto& worker : workers_) worker->thread.request_stop();
  workers_.clear();
}

void Loader::Engine::start() {
  for (std::uint32_t i = 0; i < options_.threads; ++i) workers_.push_back(std::make_unique<Worker>());
  for (auto& worker : workers_) {
    worker->thread = Thread([this, w = worker.get()](StopToken stop) { work(*w, stop); });
  }
}

void Loader::Engine::cancel() {
  MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = cancelled("loader: cancelled");
  is_stopping_ = true;
  work_.notify_all();
  ready_.notify_all();
}

void Loader::Engine::work(Worker& worker, StopToken stop) {
  SampleReader reader(
      {source_, contents_, memory_.get(), cache_, options_.check, clock_period(source_), options_.seed});
  Piece piece;
  while (await_piece(worker, piece)) {
    const double start = thread_cpu_seconds();
    Item& item = *piece.item;
    Status prepared;
    PieceResult result;
    if (piece.is_preparation()) {
      prepared = prepare(item);
    } else {
      result = reader.fill(
          {item.plan, *item.memory, item.memory->files, piece.begin, piece.end, worker.current}, stop);
    }
    if (stop.stop_requested()) return;
    {
      MutexLock lock(mutex_);
      worker.piece = {};
      if (piece.is_preparation()) {
        finish_preparation(item, std::move(prepared));
      } else {
        finish(piece, result);
      }
      if (!item.is_full()) {
        finish_claim(start);
        continue;
      }
    }
    complete(item);
    MutexLock lock(mutex_);
    item.is_complete = true;
    if (!items_.empty() && items_.front().get() == &item) ready_.notify_all();
    finish_claim(start);
  }
}

// The thread has finished its claim.
void Loader::Engine::finish_claim(double start) {
  stats_.work_s += thread_cpu_seconds() - start;
  if (--busy_ == 0 && is_restarting_) ready_.notify_all();
}

// Returns false when the loader stops.
bool Loader::Engine::await_piece(Worker& worker, Piece& piece) {
  MutexLock lock(mutex_);
  if (!is_stopping_ && !claim(piece)) {
    const Stopwatch idle;
    while (!is_stopping_ && !claim(piece)) work_.wait(mutex_, Deadline::never());
    stats_.idle_s += idle.seconds();
  }
  if (is_stopping_) return false;
  worker.current.store(piece.begin, std::memory_order_relaxed);
  if (!piece.is_preparation()) worker.piece = piece;
  ++busy_;
  return true;
}

// Claims from the first batch with unclaimed samples, else begins a new batch. Threads that sleep here found
// neither: finish_preparation(), next() and restart() wake them.
bool Loader::Engine::claim(Piece& piece) {
  if (!failure_.ok() || is_restarting_) return false;
  for (const auto& item : items_) {
    if (!item->is_claimable()) continue;
    piece = {item.get(), item->claimed, std::min(item->claimed + piece_, item->plan.count)};
    item->claimed = piece.end;
    return true;
  }
  while (items_.size() < options_.prefetch) {
    if (Status planned = plan_next(); !planned.ok()) {
      failure_ = std::move(planned);
      ready_.notify_all();
      return false;
    }
    if (items_.back()->is_epoch_end()) continue;
    piece = {items_.back().get(), 0, 0};
    return true;
  }
  return false;
}

Status Loader::Engine::plan_next() {
  auto item = std::make_unique<Item>();
  STOKER_RETURN_IF_ERROR(schedule_.next(item->plan));
  if (item->is_epoch_end()) ready_.notify_all();
  items_.push_back(std::move(item));
  return Status();
}

Status Loader::Engine::prepare(Item& item) const {
  item.memory = pool_->acquire();
  if (!item.memory) item.memory = std::make_unique<Batch::Memory>(options_.allocator);
  Batch::Memory& memory = *item.memory;
  item.plan.samples = std::move(memory.samples);  // reuses its memory
  item.plan.list_samples();
  const std::size_t count = item.plan.count;
  memory.row_bytes = contents_.row_bytes();
  memory.content = options_.content;
  memory.element = contents_.element();
  memory.shape = contents_.shape();
  std::size_t size = memory.row_bytes * options_.batch;
  if (options_.content == Content::bytes) {
    size = find_files(item.plan, memory);
    // A little more than this batch needs, because the next one has about the same size.
    if (size > memory.capacity) size += size / 8;
  }
  if (!memory.reserve(size))
    return unavailable("loader: no memory for a batch of {} samples ({})", count, ByteCount{size});
  memory.labels.resize(count);
  memory.columns.resize(options_.fields.size());
  for (std::size_t i = 0; i < options_.fields.size(); ++i) {
    memory.columns[i].kind = options_.fields[i].kind;
    memory.columns[i].resize(count);
  }
  return Status();
}

// Locates the samples' files and assigns their places in the batch; returns their total size.
std::size_t Loader::Engine::find_files(const BatchPlan& plan, Batch::Memory& memory) const {
  memory.files.resize(plan.count);
  memory.offsets.resize(plan.count + 1);
  contents_.find_files(plan.samples, memory.files);
  std::size_t size = 0;
  for (std::size_t i = 0; i < plan.count; ++i) {
    memory.offsets[i] = static_cast<std::int64_t>(size);
    // A missing or too long file fails when it is read.
    if (memory.files[i].length <= kLargestFile) size += memory.files[i].length;
  }
  memory.offsets[plan.count] = static_cast<std::int64_t>(size);
  return size;
}

void Loader::Engine::finish_preparation(Item& item, Status status) {
  item.is_prepared = status.ok();
  if (!status.ok()) {
    failure_ = std::move(status);
    ready_.notify_all();
  }
  work_.notify_all();
}

void Loader::Engine::finish(const Piece& piece, PieceResult& result) {
  Item& item = *piece.item;
  item.done += piece.end - piece.begin;
  for (UnitFault& fault : result.faults) {
    item.is_damaged.resize(item.plan.count);
    item.is_damaged[fault.place] = 1;
    if (fault.is_damage && options_.on_damage == DamagePolicy::skip) {
      item.faults.emplace_back(fault.place, std::move(fault.why));
    } else if (item.error.ok() || fault.place < item.error_at) {
      item.error = std::move(fault.why);
      item.error_at = fault.place;
    }
  }
  stats_.cached += result.cached;
  stats_.read.value += result.bytes;
  stats_.read_s += result.seconds[static_cast<std::size_t>(Stage::read)];
  stats_.check_s += result.seconds[static_cast<std::size_t>(Stage::check)];
  stats_.decode_s += result.seconds[static_cast<std::size_t>(Stage::decode)];
  stats_.transform_s += result.seconds[static_cast<std::size_t>(Stage::transform)];
}

// All samples are filled: drops the damaged ones and mixes the rest. Called by the thread that filled the
// last piece; no other thread uses the item until it is complete.
void Loader::Engine::complete(Item& item) const {
  if (!item.error.ok()) return;
  Batch::Memory& memory = *item.memory;
  memory.samples = std::move(item.plan.samples);
  memory.epoch = item.plan.epoch;
  memory.after = item.plan.after;
  std::sort(item.faults.begin(), item.faults.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [i, error] : item.faults)
    item.skipped.push_back({memory.samples[i], item.plan.epoch, std::string(error.message())});
  if (!item.faults.empty()) memory.drop_damaged(item.is_damaged);
  if (mixer_) {
    mixer_->mix({options_.seed, static_cast<std::uint64_t>(item.plan.epoch.value), item.plan.begin}, memory);
  }
}

Status Loader::Engine::await_front(Deadline deadline) {
  const auto is_ready = [&]() STOKER_REQUIRES_LOCK(mutex_) {
    return !items_.empty() && items_.front()->is_ready();
  };
  if (!failure_.ok()) return failure_;
  if (is_ready()) return Status();
  const Stopwatch waiting;
  Status status;
  while (status.ok() && !is_ready()) {
    const bool in_time = ready_.wait(mutex_, deadline);
    if (!failure_.ok()) {
      status = failure_;
    } else if (!in_time && !is_ready()) {
      status = deadline_status();
    }
  }
  stats_.wait_s += waiting.seconds();
  return status;
}

Status Loader::Engine::deadline_status() const {
  const Item* front = items_.empty() ? nullptr : items_.front().get();
  std::optional<std::size_t> first;
  for (const auto& worker : workers_) {
    if (!front || worker->piece.item != front) continue;
    const std::size_t current = worker->current.load(std::memory_order_relaxed);
    if (!first || current < *first) first = current;
  }
  if (!first) return timeout("loader: no batch before the deadline: not begun yet");
  return timeout("loader: no batch before the deadline: epoch {}, waiting for {}",
                 front->plan.epoch.value + 1, contents_.name(front->plan.samples[*first]));
}

// Records the dropped samples; fails when there are too many.
Status Loader::Engine::record_skipped(Item& item) {
  if (item.skipped.empty()) return Status();
  skipped_count_ += item.skipped.size();
  const std::string last = item.skipped.back().why;
  for (SkippedSample& skipped : item.skipped) {
    if (skipped_.size() < kMaxListed) skipped_.push_back(std::move(skipped));
  }
  if (skipped_count_ <= options_.max_skipped) return Status();
  return corrupt("loader: {} damaged samples exceed the limit of {} (max_skipped); the last one: {}",
                 skipped_count_, options_.max_skipped, last);
}

// An empty batch is dropped. But if ranks must take the same number of steps, a rank with fewer steps would
// block its peers.
bool Loader::Engine::drops_batch(const Item& item) const {
  const bool is_in_step = options_.rank.world.value > 1 && options_.rank.remainder != Remainder::exact;
  return item.memory->samples.empty() && !is_in_step;
}

// The next complete batch, or end of an epoch.
Result<std::unique_ptr<Loader::Engine::Item>> Loader::Engine::pop_front_item(Deadline deadline) {
  MutexLock lock(mutex_);
  STOKER_RETURN_IF_ERROR(await_front(deadline));
  std::unique_ptr<Item> item = std::move(items_.front());
  items_.pop_front();
  if (!item->error.ok()) {
    failure_ = item->error;
    return failure_;
  }
  work_.notify_all();
  return item;
}

Result<std::optional<Batch>> Loader::Engine::next(Deadline deadline) {
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(item, pop_front_item(deadline));
    if (item->is_epoch_end()) {
      state_ = item->plan.after;
      return std::optional<Batch>();
    }
    Status over_limit = record_skipped(*item);
    MutexLock lock(mutex_);
    if (!over_limit.ok()) {
      failure_ = std::move(over_limit);
      return failure_;
    }
    state_ = item->plan.after;
    stats_.skipped = skipped_count_;
    if (drops_batch(*item)) {
      pool_->release(std::move(item->memory));
      continue;
    }
    Batch batch(std::move(item->memory), pool_);
    stats_.batches += 1;
    stats_.samples += batch.count();
    return std::optional<Batch>(std::move(batch));
  }
}

Status Loader::Engine::restart(const OrderState& state) {
  STOKER_ASSIGN_OR_RETURN(schedule, Schedule::create(order_of(contents_, options_), options_, state));
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  is_restarting_ = true;
  while (busy_ > 0) ready_.wait(mutex_, Deadline::never());  // bounded by their current samples
  for (auto& item : items_) {
    if (item->memory) pool_->release(std::move(item->memory));
  }
  items_.clear();
  schedule_ = std::move(schedule);
  state_ = state;
  is_restarting_ = false;
  work_.notify_all();
  return Status();
}

std::uint64_t Loader::Engine::batches_from(std::uint64_t position) const {
  MutexLock lock(mutex_);
  return schedule_.batches_from(position);
}

LoaderStats Loader::Engine::stats() const {
  MutexLock lock(mutex_);
  LoaderStats stats = stats_;
  stats.cache_used = cache_.used();
  return stats;
}

}  // namespace stoker::loader
