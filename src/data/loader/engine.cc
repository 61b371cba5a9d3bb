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
                       Contents contents)
    : source_(source),
      options_(options),
      contents_(std::move(contents)),
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
  for (;;) {
    Piece piece;
    {
      MutexLock lock(mutex_);
      if (!is_stopping_ && !claim(piece)) {
        const Stopwatch idle;
        while (!is_stopping_ && !claim(piece)) work_.wait(mutex_, Deadline::never());
        stats_.idle_s += idle.seconds();
      }
      if (is_stopping_) return;
      worker.current.store(piece.begin, std::memory_order_relaxed);
      worker.piece = piece;
      ++busy_;
    }
    const double start = thread_cpu_seconds();
    Item& item = *piece.item;
    Filled filled =
        reader.fill({item.plan, *item.memory, item.files, piece.begin, piece.end, worker.current}, stop);
    if (stop.stop_requested()) return;
    MutexLock lock(mutex_);
    worker.piece = {};
    stats_.work_s += thread_cpu_seconds() - start;
    finish(piece, filled);
    if (--busy_ == 0 && is_restarting_) ready_.notify_all();
  }
}

bool Loader::Engine::claim(Piece& piece) {
  if (!failure_.ok() || is_restarting_) return false;
  while (items_.empty() || items_.back()->claimed == items_.back()->plan.samples.size()) {
    if (items_.size() >= options_.prefetch) return false;
    if (Status planned = plan_next(); !planned.ok()) {
      failure_ = std::move(planned);
      ready_.notify_all();
      return false;
    }
  }
  Item& item = *items_.back();
  piece = {&item, item.claimed, std::min(item.claimed + piece_, item.plan.samples.size())};
  item.claimed = piece.end;
  // Whoever sleeps because there was nothing to claim is woken by next() alone; what is left is for all.
  if (item.claimed < item.plan.samples.size()) work_.notify_one();
  return true;
}

Status Loader::Engine::plan_next() {
  auto item = std::make_unique<Item>();
  RETURN_IF_ERROR(schedule_.next(item->plan));
  if (item->is_epoch_end()) {
    ready_.notify_all();
  } else {
    RETURN_IF_ERROR(make_room(*item));
  }
  items_.push_back(std::move(item));
  return Status();
}

Status Loader::Engine::make_room(Item& item) const {
  item.memory = pool_->take();
  if (!item.memory) item.memory = std::make_unique<Batch::Memory>();
  Batch::Memory& memory = *item.memory;
  const std::size_t count = item.plan.samples.size();
  memory.row_bytes = contents_.row_bytes();
  memory.element = contents_.element();
  memory.shape = contents_.shape();
  std::size_t size = memory.row_bytes * options_.batch;
  if (options_.content == Content::bytes) {
    item.files.reserve(count);
    memory.offsets.assign(1, 0);
    for (const std::uint64_t sample : item.plan.samples) {
      const Result<formats::Locator> file = contents_.file_of(sample);
      // One that is missing or too long is refused when it is read.
      item.files.push_back(file.ok() ? *file : formats::Locator{.length = kLargestFile + 1});
      size += file.ok() ? file->length : 0;
      memory.offsets.push_back(static_cast<std::int64_t>(size));
    }
  }
  if (!memory.reserve(size))
    return unavailable("loader: no memory for a batch of {} samples ({})", count, ByteCount{size});
  memory.labels.resize(count);
  memory.columns.resize(options_.fields.size());
  for (std::size_t i = 0; i < options_.fields.size(); ++i) {
    memory.columns[i].kind = options_.fields[i].kind;
    memory.columns[i].resize(count);
  }
  item.is_damaged.assign(count, 0);
  return Status();
}

void Loader::Engine::finish(const Piece& piece, Filled& filled) {
  Item& item = *piece.item;
  item.done += piece.end - piece.begin;
  for (UnitFault& fault : filled.faults) {
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
  if (item.is_ready() && !items_.empty() && items_.front().get() == &item) ready_.notify_all();
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

// Lists what is damaged, and leaves it out of the batch; an error when that is too much.
Status Loader::Engine::leave_out_damaged(Item& item) {
  if (item.faults.empty()) return Status();
  std::sort(item.faults.begin(), item.faults.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [i, error] : item.faults) {
    if (skipped_.size() < kMostListed)
      skipped_.push_back({item.memory->samples[i], item.plan.epoch, std::string(error.message())});
  }
  skipped_count_ += item.memory->leave_out(item.is_damaged);
  if (skipped_count_ <= options_.most_faults) return Status();
  return corrupt("loader: {} damaged samples, more than the {} that may be skipped; the last one: {}",
                 skipped_count_, options_.most_faults, item.faults.back().second.message());
}

Result<std::optional<Batch>> Loader::Engine::next(Deadline deadline) {
  std::unique_ptr<Item> item;
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(await_front(deadline));
    item = std::move(items_.front());
    items_.pop_front();
    if (!item->error.ok()) {
      failure_ = item->error;
      return failure_;
    }
    work_.notify_all();
  }
  if (item->is_epoch_end()) {
    state_ = item->plan.after;
    return std::optional<Batch>();
  }
  item->memory->samples = std::move(item->plan.samples);
  item->memory->epoch = item->plan.epoch;
  item->memory->after = item->plan.after;
  Status too_many = leave_out_damaged(*item);
  MutexLock lock(mutex_);
  if (!too_many.ok()) {
    failure_ = std::move(too_many);
    return failure_;
  }
  state_ = item->plan.after;
  Batch batch(std::move(item->memory), pool_);
  stats_.batches += 1;
  stats_.samples += batch.count();
  stats_.skipped = skipped_count_;
  return std::optional<Batch>(std::move(batch));
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
