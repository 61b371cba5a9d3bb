#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <sys/resource.h>

#include "base/file.h"
#include "base/stopwatch.h"
#include "base/thread.h"
#include "checkpoint/layout.h"
#include "checkpoint/read/catalog.h"
#include "checkpoint/retention/retention.h"
#include "checkpoint/save/slot.h"
#include "checkpoint/save/step_writer.h"
#include "stoker/checkpoint.h"

namespace stoker::checkpoint {

namespace {

constexpr std::size_t kSlots = 2;
// Steps that may be on a node-local disk and not yet on shared storage.
constexpr std::size_t kMaxLocalSteps = 2;
constexpr std::size_t kOutcomes = 64;
constexpr std::size_t kMaxRememberedSteps = 4096;
// If processors are scarce, the training has priority (bench/checkpoint_drain.py). Writing frees memory that
// the save after next needs; draining only shortens the time in which a lost node costs a step.
constexpr int kWriterNice = 10;
constexpr int kDrainNice = 13;

// Of the calling thread only: on Linux it is per thread.
void lower_priority(int nice) { (void)::setpriority(PRIO_PROCESS, 0, nice); }

Status check_options(const SaverOptions& options) {
  if (options.directory.empty()) return invalid("checkpoint: no directory (checkpoint.directory)");
  if (options.world_size.value < 1 || options.rank.value < 0 ||
      options.rank.value >= options.world_size.value) {
    return invalid("checkpoint: rank {} is outside a world of {}", options.rank, options.world_size);
  }
  if (options.run.empty() || printable(options.run) != options.run) {
    return invalid("checkpoint: run '{}' is empty or not plain text", printable(options.run));
  }
  if (is_plain_word(options.writer)) return {};
  return invalid("checkpoint: writer '{}' is not 1 to 64 letters, digits, '-' or '_'",
                 printable(options.writer));
}

// A second run in the same directory would overwrite the steps of the first.
Status check_owner(const SaverOptions& options) {
  STOKER_ASSIGN_OR_RETURN(steps, step_folders(options.directory));
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const auto manifest = read_manifest(options.directory / step_folder_name(*step));
    if (!manifest.ok() || manifest->run.empty()) continue;
    if (manifest->run == options.run) return {};
    return exists("{}: contains checkpoints of run '{}', not of '{}' (checkpoint.directory)",
                  printable(options.directory.string()), printable(manifest->run), options.run);
  }
  return {};
}

}  // namespace

class Saver::Impl {
 public:
  explicit Impl(SaverOptions options)
      : options_(std::move(options)), save_attempts_(options_.failed_attempts) {
    thread_ = Thread([this](const StopToken& stop) { write_all(stop); });
    if (options_.local.empty()) return;
    drainer_ = Thread([this](const StopToken& stop) { drain_all(stop); });
  }
  ~Impl() {
    (void)wait(Deadline::after(std::chrono::seconds(1)));
    end();
  }
  // Ends the writer thread; a step in flight is aborted.
  void end() {
    {
      // Under the lock, so that the thread cannot start to wait between the request and the notification.
      const MutexLock lock(mutex_);
      has_ended_ = true;
      thread_.request_stop();
      drainer_.request_stop();
    }
    changed_.notify_all();
    thread_.join();
    drainer_.join();
  }

  Status reserve(const StepContents& contents) {
    STOKER_RETURN_IF_ERROR(update_layout(contents));
    std::vector<SaveSlot*> taken;
    Status status;
    while (status.ok() && taken.size() < kSlots) {
      auto slot = free_slot();
      if (slot.ok()) taken.push_back(*slot);
      status = slot.ok() ? prepare_slot(**slot, layout_) : slot.status();
    }
    for (SaveSlot* slot : taken) release(slot);
    return status;
  }

  Status save(const StepContents& contents) {
    Stopwatch stall;
    if (contents.step.value < 0) return invalid("checkpoint: step {} is negative", contents.step);
    const std::uint64_t repeat = next_repeat(contents.step);  // before anything can fail on this rank only
    auto prepared = prepared_slot(contents);
    if (!prepared.ok()) {
      report_failed_save(options_, contents.step, repeat, prepared.status());
      return prepared.status();
    }
    SaveSlot* slot = *prepared;
    Status earlier = enqueue(describe(*slot, contents, repeat));
    // Written in the background while it is filled.
    copy_share(contents, *slot);
    finish_copy(*slot, stall.seconds());
    return earlier;
  }

  void abandon(Step step, const Status& why) { report_failed_save(options_, step, next_repeat(step), why); }

  Status wait(Deadline deadline) {
    const MutexLock lock(mutex_);
    while (!in_flight_.empty()) {
      if (!changed_.wait(mutex_, deadline) && !in_flight_.empty()) {
        return timeout("checkpoint step {}: still being written", in_flight_.front().second);
      }
    }
    return std::exchange(error_, Status());
  }

  std::uint64_t save_count() const { return next_save_id_; }
  std::optional<Status> outcome(std::uint64_t save_id) const {
    const MutexLock lock(mutex_);
    const auto found = outcomes_.find(save_id);
    return found == outcomes_.end() ? std::nullopt : std::optional<Status>(found->second);
  }
  bool wait_for_save(std::uint64_t save_id, Deadline deadline) const {
    const MutexLock lock(mutex_);
    // An id that is neither queued nor remembered has ended.
    const auto is_queued = [&]() STOKER_REQUIRES_LOCK(mutex_) {
      return std::any_of(in_flight_.begin(), in_flight_.end(),
                         [&](const auto& entry) { return entry.first == save_id; });
    };
    while (is_queued()) {
      if (!changed_.wait(mutex_, deadline)) return !is_queued();
    }
    return true;
  }

  std::optional<SaveTimes> last_times() const {
    const MutexLock lock(mutex_);
    return times_;
  }
  bool is_busy() const {
    const MutexLock lock(mutex_);
    return !in_flight_.empty();
  }
  void remove_acknowledged(Deadline deadline) { writer_.remove_acknowledged(deadline); }
  // Removes the folder on the node-local disk once no rank has a share in it.
  void remove_local_folder() {
    std::error_code error;
    if (!options_.local.empty()) std::filesystem::remove(options_.local, error);
  }

 private:
  // A slot with memory for these contents.
  Result<SaveSlot*> prepared_slot(const StepContents& contents) {
    STOKER_RETURN_IF_ERROR(update_layout(contents));
    STOKER_ASSIGN_OR_RETURN(slot, free_slot());
    Status status = prepare_slot(*slot, layout_);
    if (status.ok()) return slot;
    release(slot);
    return status;
  }
  // Marks a slot as busy; waits while the writer has all of them.
  Result<SaveSlot*> free_slot() {
    const Deadline deadline = Deadline::after(options_.limit + std::chrono::seconds(5));
    const MutexLock lock(mutex_);
    for (;;) {
      if (has_ended_) return invalid("checkpoint: save() after finish()");
      for (SaveSlot& slot : slots_) {
        if (slot.is_busy) continue;
        slot.is_busy = true;
        return &slot;
      }
      if (!changed_.wait(mutex_, deadline)) {
        return timeout("checkpoint: two steps are still being written after {}",
                       rounded_duration(options_.limit));
      }
    }
  }
  void release(SaveSlot* slot) {
    const MutexLock lock(mutex_);
    slot->is_busy = false;
    changed_.notify_all();
  }

  // Plan of the next save: usually the same tensors as before.
  Status update_layout(const StepContents& contents) {
    if (layout_ && fits(layout_->plan, contents)) return {};
    STOKER_ASSIGN_OR_RETURN(layout, make_layout(contents, options_.rank, options_.world_size));
    layout_ = std::move(layout);
    return {};
  }

  // Number of earlier requests for that step. A count of all saves would differ from the other ranks' for
  // ever after a failed or skipped save on this rank.
  std::uint64_t next_repeat(Step step) {
    const std::uint64_t before = save_attempts_[step]++;
    auto least = save_attempts_.begin();
    if (save_attempts_.size() > kMaxRememberedSteps)
      save_attempts_.erase(least->first == step ? std::next(least) : least);
    return before;
  }

  // Everything of a step except its tensors' bytes.
  StepInFlight describe(SaveSlot& slot, const StepContents& contents, std::uint64_t repeat) {
    StepInFlight step;
    step.slot = &slot;
    step.layout = slot.layout;
    step.save_id = next_save_id_++;
    step.repeat = repeat;
    step.deadline = Deadline::after(options_.limit);
    step.head.step = contents.step;
    step.head.save = save_name(options_.run, options_.writer, contents.step, repeat);
    step.head.run = options_.run;
    step.head.world_size = options_.world_size;
    step.marker.save = step.head.save;
    step.marker.layout = slot.layout->plan.layout;
    step.marker.rank_state = contents.rank_state;
    if (options_.compares_ranks && options_.world_size.value > 1)
      step.marker.checksums = tensor_checksums(contents, slot.layout->plan);
    if (options_.rank.value == 0) {
      step.head.state = contents.state;
      step.head.hyper_parameters = contents.hyper_parameters;
    }
    for (CopyProgress& part : slot.copy_progress) part.restart();
    return step;
  }

  // Queues the step; returns the error of an earlier one, once.
  Status enqueue(StepInFlight step) {
    const MutexLock lock(mutex_);
    in_flight_.push_back({step.save_id, step.head.step});
    queue_.push_back(std::move(step));
    changed_.notify_all();
    return std::exchange(error_, Status());
  }

  using Queue = std::deque<StepInFlight>;
  // Waits for a step in one of the queues; nullopt when the thread must end.
  std::optional<StepInFlight> next_of(Queue Impl::* queue, const StopToken& stop) {
    const MutexLock lock(mutex_);
    while ((this->*queue).empty() && !stop.stop_requested())
      changed_.wait(mutex_, Deadline::after(std::chrono::hours(1)));
    if (stop.stop_requested()) return std::nullopt;
    StepInFlight step = std::move((this->*queue).front());
    (this->*queue).pop_front();
    changed_.notify_all();
    return step;
  }

  // The writer thread: to shared storage, or to the node-local disk, which frees the memory.
  void write_all(const StopToken& stop) {
    lower_priority(kWriterNice);
    while (auto step = next_of(&Impl::queue_, stop)) {
      name_tensors(*step);
      if (options_.local.empty()) {
        commit(*step, stop);
        continue;
      }
      wait_for_drain(stop);
      write_locally(*step, stop);
      const MutexLock lock(mutex_);
      draining_ += 1;
      drains_.push_back(std::move(*step));
      changed_.notify_all();
    }
  }

  // Waits until fewer than kMaxLocalSteps steps are on the node-local disk: a lost node loses no more of
  // them.
  void wait_for_drain(const StopToken& stop) {
    const MutexLock lock(mutex_);
    while (draining_ >= kMaxLocalSteps && !stop.stop_requested())
      changed_.wait(mutex_, Deadline::after(std::chrono::hours(1)));
  }

  // Not on the caller's thread: there may be ten thousand tensors.
  void name_tensors(StepInFlight& step) const {
    if (options_.rank.value != 0) return;
    for (std::size_t p = 0; p < kParts.size(); ++p) step.head.tensors[p] = step.layout->plan.parts[p].tensors;
  }

  // If the local disk fails, the share stays in memory and is written directly to shared storage.
  void write_locally(StepInFlight& step, const StopToken& stop) {
    Status status = writer_.write_locally(step, stop);
    if (status.ok()) release(std::exchange(step.slot, nullptr));
    const MutexLock lock(mutex_);
    local_error_ = std::move(status);
  }

  // The drain thread, with a node-local disk: from there to shared storage.
  void drain_all(const StopToken& stop) {
    lower_priority(kDrainNice);
    while (auto step = next_of(&Impl::drains_, stop)) {
      step->deadline = Deadline::after(options_.limit);
      commit(*step, stop);
      const MutexLock lock(mutex_);
      draining_ -= 1;
      changed_.notify_all();
    }
  }

  void commit(StepInFlight& step, const StopToken& stop) {
    auto times = writer_.commit(step, stop);
    if (times.ok()) {
      const MutexLock lock(mutex_);
      times->local_error = local_error_;
      times_ = std::move(*times);
    }
    end_step(step, times.status());
  }

  void end_step(StepInFlight& step, Status status) {
    status = std::move(status).with_context(format("checkpoint step {}", step.head.step));
    if (step.slot != nullptr) {
      wait_for_copy(step);  // after an early failure the caller may still be filling it
      release(std::exchange(step.slot, nullptr));
    }
    const MutexLock lock(mutex_);
    outcomes_[step.save_id] = status;
    if (outcomes_.size() > kOutcomes) outcomes_.erase(outcomes_.begin());
    if (!status.ok() && error_.ok()) error_ = std::move(status);
    std::erase_if(in_flight_, [&](const auto& entry) { return entry.first == step.save_id; });
    changed_.notify_all();
  }

  // Constant after construction.
  const SaverOptions options_;
  // Used by the caller's thread only.
  std::uint64_t next_save_id_ = 0;
  std::map<Step, std::uint64_t> save_attempts_;  // count for each of the last kMaxRememberedSteps steps
  SaveLayoutPointer layout_;                     // of the tensors saved last
  // Used by the threads, and by the caller's thread once they have ended.
  StepWriter writer_{options_};
  // A slot belongs to the caller while it is filled, then to its step; is_busy is guarded by mutex_.
  std::array<SaveSlot, kSlots> slots_;
  mutable Mutex mutex_;
  mutable Condition changed_;
  Queue queue_ STOKER_GUARDED_BY(mutex_);
  Queue drains_ STOKER_GUARDED_BY(mutex_);              // on the node-local disk, or rejected by it
  std::size_t draining_ STOKER_GUARDED_BY(mutex_) = 0;  // these, and the one being drained
  std::deque<std::pair<std::uint64_t, Step>> in_flight_
      STOKER_GUARDED_BY(mutex_);  // neither published nor failed
  bool has_ended_ STOKER_GUARDED_BY(mutex_) = false;
  Status error_ STOKER_GUARDED_BY(mutex_);
  Status local_error_ STOKER_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Status> outcomes_ STOKER_GUARDED_BY(mutex_);  // by save id, the last kOutcomes
  std::optional<SaveTimes> times_ STOKER_GUARDED_BY(mutex_);
  Thread thread_;   // the last two members: they use all of the above
  Thread drainer_;  // with a node-local disk only
};

Saver::Saver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Saver::~Saver() = default;

Result<std::unique_ptr<Saver>> Saver::create(SaverOptions options) {
  STOKER_RETURN_IF_ERROR(check_options(options));
  STOKER_RETURN_IF_ERROR(make_directories(options.directory));
  // On every rank, so that none of them waits for another that was refused.
  STOKER_RETURN_IF_ERROR(check_owner(options));
  if (options.rank.value == 0) {
    (void)remove_abandoned(options.directory, RealClock().wall());
  }
  return std::unique_ptr<Saver>(new Saver(std::make_unique<Impl>(std::move(options))));
}

Status Saver::reserve(const StepContents& contents) { return impl_->reserve(contents); }
Status Saver::save(const StepContents& contents) { return impl_->save(contents); }
void Saver::abandon(Step step, const Status& why) { impl_->abandon(step, why); }
Status Saver::wait(Deadline deadline) { return impl_->wait(deadline); }

Status Saver::finish(Deadline deadline) {
  Status status = impl_->wait(deadline);
  impl_->end();
  impl_->remove_local_folder();
  impl_->remove_acknowledged(Deadline::after(std::min<Duration>(deadline.left(), std::chrono::seconds(1))));
  return status;
}

std::uint64_t Saver::save_count() const { return impl_->save_count(); }
std::optional<Status> Saver::outcome(std::uint64_t save_id) const { return impl_->outcome(save_id); }
bool Saver::wait_for_save(std::uint64_t save_id, Deadline deadline) const {
  return impl_->wait_for_save(save_id, deadline);
}

std::optional<SaveTimes> Saver::last_times() const { return impl_->last_times(); }
bool Saver::is_busy() const { return impl_->is_busy(); }

}  // namespace stoker::checkpoint
