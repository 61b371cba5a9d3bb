#include "data/loader/engine.h"

#include <algorithm>
#include <iterator>
#include <time.h>

namespace stoker::data {
namespace {

double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Small enough that all threads share the first batch, large enough that the lock is taken rarely.
std::size_t piece_size(const LoaderOptions& options) {
  const std::size_t most = options.content == Content::images ? 32 : 512;
  return std::clamp<std::size_t>(options.batch / (2 * std::size_t{options.threads}), 1, most);
}

// Reading the clock costs about 25 ns: nothing beside a photograph, much beside a thumbnail.
std::uint32_t clock_period(const formats::ShardSource& source) {
  constexpr std::uint64_t kSmall = 16'384;
  std::uint64_t bytes = 0;
  for (const formats::ShardInfo& shard : source.split().shards) bytes += shard.bytes;
  return bytes / source.samples().size() < kSmall ? 8 : 1;
}

constexpr std::size_t kMostListed = 1000;

}  // namespace

Loader::Engine::Engine(const formats::ShardSource& source, const LoaderOptions& options, Schedule schedule,
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
    Status laid_out;
    Filled filled;
    if (piece.is_layout()) {
      laid_out = lay_out(item);
    } else {
      filled = reader.fill(
          {item.plan, *item.memory, item.memory->files, piece.begin, piece.end, worker.current}, stop);
    }
    if (stop.stop_requested()) return;
    {
      MutexLock lock(mutex_);
      worker.piece = {};
      if (piece.is_layout()) {
        finish_layout(item, std::move(laid_out));
      } else {
        finish(piece, filled);
      }
      if (!item.is_full()) {
        rest(start);
        continue;
      }
    }
    complete(item);
    MutexLock lock(mutex_);
    item.is_complete = true;
    if (!items_.empty() && items_.front().get() == &item) ready_.notify_all();
    rest(start);
  }
}

// The thread has done what it claimed.
void Loader::Engine::rest(double start) {
  stats_.work_s += thread_cpu_seconds() - start;
  if (--busy_ == 0 && is_restarting_) ready_.notify_all();
}

// False: the loader stops.
bool Loader::Engine::await_piece(Worker& worker, Piece& piece) {
  MutexLock lock(mutex_);
  if (!is_stopping_ && !claim(piece)) {
    const Stopwatch idle;
    while (!is_stopping_ && !claim(piece)) work_.wait(mutex_, Deadline::never());
    stats_.idle_s += idle.seconds();
  }
  if (is_stopping_) return false;
  worker.current.store(piece.begin, std::memory_order_relaxed);
  if (!piece.is_layout()) worker.piece = piece;
  ++busy_;
  return true;
}

// The first batch that has samples left, before a new one is begun. Threads that sleep here have found
// neither: finish_layout(), next() and restart() wake them.
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
  RETURN_IF_ERROR(schedule_.next(item->plan));
  if (item->is_epoch_end()) ready_.notify_all();
  items_.push_back(std::move(item));
  return Status();
}

Status Loader::Engine::lay_out(Item& item) const {
  item.memory = pool_->take();
  if (!item.memory) item.memory = std::make_unique<Batch::Memory>();
  Batch::Memory& memory = *item.memory;
  item.plan.samples = std::move(memory.samples);  // its room
  item.plan.list_samples();
  const std::size_t count = item.plan.count;
  memory.row_bytes = contents_.row_bytes();
  memory.element = contents_.element();
  memory.shape = contents_.shape();
  std::size_t size = memory.row_bytes * options_.batch;
  if (options_.content == Content::bytes) {
    size = find_files(item.plan, memory);
    // A little more than this batch needs: the next one is of about the same size.
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

// Where the samples' files lie, and where they go in the batch; how long they are together.
std::size_t Loader::Engine::find_files(const BatchPlan& plan, Batch::Memory& memory) const {
  memory.files.resize(plan.count);
  memory.offsets.resize(plan.count + 1);
  contents_.find_files(plan.samples, memory.files);
  std::size_t size = 0;
  for (std::size_t i = 0; i < plan.count; ++i) {
    memory.offsets[i] = static_cast<std::int64_t>(size);
    // One that is missing or too long is refused when it is read.
    if (memory.files[i].length <= kLargestFile) size += memory.files[i].length;
  }
  memory.offsets[plan.count] = static_cast<std::int64_t>(size);
  return size;
}

void Loader::Engine::finish_layout(Item& item, Status status) {
  item.is_laid_out = status.ok();
  if (!status.ok()) {
    failure_ = std::move(status);
    ready_.notify_all();
  }
  work_.notify_all();
}

void Loader::Engine::finish(const Piece& piece, Filled& filled) {
  Item& item = *piece.item;
  item.done += piece.end - piece.begin;
  for (UnitFault& fault : filled.faults) {
    item.is_damaged.resize(item.plan.count);
    item.is_damaged[fault.place] = 1;
    if (fault.is_damage && options_.faults == Faults::skip) {
      item.faults.emplace_back(fault.place, std::move(fault.why));
    } else if (item.error.ok() || fault.place < item.error_at) {
      item.error = std::move(fault.why);
      item.error_at = fault.place;
    }
  }
  stats_.cached += filled.cached;
  stats_.read.value += filled.bytes;
  stats_.read_s += filled.seconds[static_cast<std::size_t>(Stage::read)];
  stats_.check_s += filled.seconds[static_cast<std::size_t>(Stage::check)];
  stats_.decode_s += filled.seconds[static_cast<std::size_t>(Stage::decode)];
  stats_.transform_s += filled.seconds[static_cast<std::size_t>(Stage::transform)];
}

// All samples are there: leaves out those that are damaged, and mixes what is left. By the thread that filled
// the last piece; no other uses the item until it is complete.
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
  if (!item.faults.empty()) memory.leave_out(item.is_damaged);
  if (mixer_) {
    mixer_->mix({options_.seed, static_cast<std::uint64_t>(item.plan.epoch.value), item.plan.begin}, memory);
  }
}

Status Loader::Engine::await_front(Deadline deadline) {
  const auto is_ready = [&]() REQUIRES_LOCK(mutex_) { return !items_.empty() && items_.front()->is_ready(); };
  if (!failure_.ok()) return failure_;
  if (is_ready()) return Status();
  const Stopwatch waiting;
  Status status;
  while (status.ok() && !is_ready()) {
    const bool in_time = ready_.wait(mutex_, deadline);
    if (!failure_.ok()) {
      status = failure_;
    } else if (!in_time && !is_ready()) {
      status = describe_wait();
    }
  }
  stats_.wait_s += waiting.seconds();
  return status;
}

Status Loader::Engine::describe_wait() const {
  const Item* front = items_.empty() ? nullptr : items_.front().get();
  std::optional<std::size_t> first;
  for (const auto& worker : workers_) {
    if (!front || worker->piece.item != front) continue;
    const std::size_t current = worker->current.load(std::memory_order_relaxed);
    if (!first || current < *first) first = current;
  }
  if (!first) return timeout("loader: no batch before the deadline: no thread has begun it");
  return timeout("loader: no batch before the deadline: epoch {}, still at {}", front->plan.epoch.value + 1,
                 contents_.name(front->plan.samples[*first]));
}

// Lists what is damaged; an error when that is too much.
Status Loader::Engine::list_skipped(Item& item) {
  if (item.skipped.empty()) return Status();
  skipped_count_ += item.skipped.size();
  const std::string last = item.skipped.back().why;
  for (SkippedSample& skipped : item.skipped) {
    if (skipped_.size() < kMostListed) skipped_.push_back(std::move(skipped));
  }
  if (skipped_count_ <= options_.most_faults) return Status();
  return corrupt("loader: {} damaged samples, more than the {} that may be skipped; the last one: {}",
                 skipped_count_, options_.most_faults, last);
}

// A batch of which nothing is left is none. But where ranks are to take as many steps as each other, one that
// took fewer would leave the others waiting.
bool Loader::Engine::passes_over(const Item& item) const {
  const bool is_in_step = options_.rank.world.value > 1 && options_.rank.remainder != Remainder::exact;
  return item.memory->samples.empty() && !is_in_step;
}

// The next batch, or end of an epoch, once it is ready.
Result<std::unique_ptr<Loader::Engine::Item>> Loader::Engine::take_front(Deadline deadline) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(await_front(deadline));
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
    OK_OR_RETURN(item, take_front(deadline));
    if (item->is_epoch_end()) {
      state_ = item->plan.after;
      return std::optional<Batch>();
    }
    Status too_many = list_skipped(*item);
    MutexLock lock(mutex_);
    if (!too_many.ok()) {
      failure_ = std::move(too_many);
      return failure_;
    }
    state_ = item->plan.after;
    stats_.skipped = skipped_count_;
    if (passes_over(*item)) {
      pool_->give(std::move(item->memory));
      continue;
    }
    Batch batch(std::move(item->memory), pool_);
    stats_.batches += 1;
    stats_.samples += batch.count();
    return std::optional<Batch>(std::move(batch));
  }
}

Status Loader::Engine::restart(const OrderState& state) {
  OK_OR_RETURN(schedule, Schedule::create(order_of(contents_, options_), options_, state));
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  is_restarting_ = true;
  while (busy_ > 0) ready_.wait(mutex_, Deadline::never());  // bounded by what they are at
  for (auto& item : items_) {
    if (item->memory) pool_->give(std::move(item->memory));
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

}  // namespace stoker::data
