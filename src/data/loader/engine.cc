#include "data/loader/engine.h"

#include <algorithm>
#include <cstring>
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
  return std::clamp<std::size_t>(options.batch / (2 * std::size_t{options.threads}), 1, 32);
}

}  // namespace

Loader::Engine::Engine(const formats::ShardSource& source, const LoaderOptions& options, Schedule schedule,
                       Transform transform)
    : source_(source),
      options_(options),
      transform_(std::move(transform)),
      piece_(piece_size(options)),
      cache_(source.samples().size(), options.cache),
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
  SampleReader reader(source_, cache_, transform_);
  for (;;) {
    Piece piece;
    {
      MutexLock lock(mutex_);
      while (!is_stopping_ && !claim(piece)) work_.wait(mutex_, Deadline::never());
      if (is_stopping_) return;
      worker.current.store(piece.begin, std::memory_order_relaxed);
      worker.piece = piece;
    }
    const Filled filled = fill(piece, worker, reader, stop);
    if (stop.stop_requested()) return;
    MutexLock lock(mutex_);
    worker.piece = {};
    finish(piece, filled);
  }
}

bool Loader::Engine::claim(Piece& piece) {
  if (!failure_.ok()) return false;
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
    item->memory = pool_->take();
    const std::size_t floats = transform_.elements();
    if (!item->memory) item->memory = Batch::Memory::allocate(floats * options_.batch);
    if (!item->memory) return unavailable("loader: no memory for a batch of {} images", options_.batch);
    item->memory->image_floats = floats;
    item->memory->labels.resize(item->plan.samples.size());
    item->is_damaged.assign(item->plan.samples.size(), 0);
  }
  items_.push_back(std::move(item));
  return Status();
}

Loader::Engine::Filled Loader::Engine::fill(const Piece& piece, Worker& worker, SampleReader& reader,
                                            const StopToken& stop) const {
  Filled filled;
  const double start = thread_cpu_seconds();
  Item& item = *piece.item;
  const std::size_t floats = item.memory->image_floats;
  for (std::size_t i = piece.begin; i < piece.end && !stop.stop_requested(); ++i) {
    worker.current.store(i, std::memory_order_relaxed);
    const std::uint64_t sample = item.plan.samples[i];
    const Occasion occasion{options_.seed, static_cast<std::uint64_t>(item.plan.epoch.value), sample};
    Status error;
    const Outcome outcome = reader.read(
        occasion, std::as_writable_bytes(std::span(item.memory->images.get() + i * floats, floats)), error);
    item.memory->labels[i] = source_.samples().label(sample).value_or(-1);
    if (outcome == Outcome::cached) ++filled.cached;
    if (outcome == Outcome::decoded || outcome == Outcome::cached) continue;
    item.is_damaged[i] = 1;
    const bool stops = outcome == Outcome::failed || options_.faults == Faults::stop;
    if (stops && filled.error.ok()) {
      filled.error = std::move(error);
      filled.error_at = i;
    }
  }
  filled.cpu_s = thread_cpu_seconds() - start;
  return filled;
}

void Loader::Engine::finish(const Piece& piece, const Filled& filled) {
  Item& item = *piece.item;
  item.done += piece.end - piece.begin;
  if (!filled.error.ok() && (item.error.ok() || filled.error_at < item.error_at)) {
    item.error = filled.error;
    item.error_at = filled.error_at;
  }
  stats_.cached += filled.cached;
  stats_.work_s += filled.cpu_s;
  if (item.is_ready() && items_.front().get() == &item) ready_.notify_all();
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
  return timeout("loader: no batch before the deadline: epoch {}, still at {}", front->plan.epoch,
                 name_of(source_, front->plan.samples[*first]));
}

// Moves the samples that are whole to the front of the batch; returns how many were left out.
std::size_t Loader::Engine::leave_out_damaged(Item& item) const {
  Batch::Memory& memory = *item.memory;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < item.is_damaged.size(); ++i) {
    if (item.is_damaged[i]) continue;
    if (kept != i) {
      std::memcpy(memory.images.get() + kept * memory.image_floats,
                  memory.images.get() + i * memory.image_floats, memory.image_floats * sizeof(float));
      memory.labels[kept] = memory.labels[i];
      memory.samples[kept] = memory.samples[i];
    }
    ++kept;
  }
  memory.labels.resize(kept);
  memory.samples.resize(kept);
  return item.is_damaged.size() - kept;
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
  state_ = item->plan.after;
  if (item->is_epoch_end()) return std::optional<Batch>();
  item->memory->samples = std::move(item->plan.samples);
  item->memory->epoch = item->plan.epoch;
  item->memory->after = state_;
  const std::size_t skipped = leave_out_damaged(*item);
  Batch batch(std::move(item->memory), pool_);
  MutexLock lock(mutex_);
  stats_.batches += 1;
  stats_.samples += batch.count();
  stats_.skipped += skipped;
  return std::optional<Batch>(std::move(batch));
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
