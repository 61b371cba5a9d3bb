#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <sys/resource.h>

#include "base/file.h"
#include "base/stopwatch.h"
#include "base/thread.h"
#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/layout.h"
#include "checkpoint/retention.h"
#include "checkpoint/save/slot.h"
#include "checkpoint/save/step_writer.h"

namespace stoker::checkpoint {

namespace {

constexpr std::size_t kSlots = 2;
// Steps that may be on a node's own disk and not yet on shared storage.
constexpr std::size_t kKept = 2;
constexpr std::size_t kOutcomes = 64;
constexpr std::size_t kAsked = 4096;
// The training comes first where processors are short (bench/checkpoint_drain.py): what writes frees memory
// that the save after next needs, what drains only shortens the time in which a lost node costs a step.
constexpr int kWriterNice = 10;
constexpr int kDrainNice = 13;

// Of the calling thread alone: Linux keeps it for each thread.
void step_back(int nice) { (void)::setpriority(PRIO_PROCESS, 0, nice); }

Status check_options(const SaverOptions& options) {
  if (options.directory.empty()) return invalid("checkpoint: no directory given (checkpoint.directory)");
  if (options.world_size.value < 1 || options.rank.value < 0 ||
      options.rank.value >= options.world_size.value) {
    return invalid("checkpoint: rank {} of {} does not exist", options.rank, options.world_size);
  }
  if (options.run.empty() || printable(options.run) != options.run) {
    return invalid("checkpoint: run '{}' is empty or not plain text", printable(options.run));
  }
  if (is_plain_word(options.writer)) return {};
  return invalid("checkpoint: writer '{}' is not 1 to 64 letters, digits, '-' or '_'",
                 printable(options.writer));
}

// A second run in the same directory would overwrite the first one's steps as it passes them.
Status check_owner(const SaverOptions& options) {
  OK_OR_RETURN(steps, step_folders(options.directory));
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const auto report = verify_step(options.directory / step_folder_name(*step), Depth::structure);
    if (!report.ok() || report->info.run.empty()) continue;
    if (report->info.run == options.run) return {};
    return exists("{}: holds checkpoints of run '{}', not of '{}' (checkpoint.directory)",
                  printable(options.directory.string()), printable(report->info.run), options.run);
  }
  return {};
}

}  // namespace

class Saver::Impl {
 public:
  explicit Impl(SaverOptions options) : options_(std::move(options)) {
    thread_ = Thread([this](const StopToken& stop) { write_all(stop); });
    if (options_.local.empty()) return;
    drainer_ = Thread([this](const StopToken& stop) { drain_all(stop); });
  }
  ~Impl() {
    (void)wait(Deadline::after(std::chrono::seconds(1)));
    end();
  }
  // Ends the writer thread; a step it is writing is given up.
  void end() {
    {
      // Under the lock, so that the thread cannot begin to wait between the request and the notification.
      const MutexLock lock(mutex_);
      has_ended_ = true;
      thread_.request_stop();
      drainer_.request_stop();
    }
    changed_.notify_all();
    thread_.join();
    drainer_.join();
  }

  Status reserve(const Contents& contents) {
    RETURN_IF_ERROR(look_at(contents));
    std::vector<Slot*> taken;
    Status status;
    while (status.ok() && taken.size() < kSlots) {
      auto slot = free_slot();
      if (slot.ok()) taken.push_back(*slot);
      status = slot.ok() ? prepare_slot(**slot, layout_) : slot.status();
    }
    for (Slot* slot : taken) release(slot);
    return status;
  }

  Status save(const Contents& contents) {
    Stopwatch stall;
    if (contents.step.value < 0) return invalid("checkpoint: step {} is less than zero", contents.step);
    const std::uint64_t repeat = count(contents.step);  // before anything may fail on this rank alone
    RETURN_IF_ERROR(look_at(contents));
    OK_OR_RETURN(slot, free_slot());
    if (Status status = prepare_slot(*slot, layout_); !status.ok()) {
      release(slot);
      return status;
    }
    Status earlier = hand_over(describe(*slot, contents, repeat));
    // Written behind as it arrives.
    copy_share(contents, *slot);
    finish_copy(*slot, stall.seconds());
    return earlier;
  }

  Status wait(Deadline deadline) {
    const MutexLock lock(mutex_);
    while (!in_flight_.empty()) {
      if (!changed_.wait(mutex_, deadline) && !in_flight_.empty()) {
        return timeout("checkpoint step {}: still being written", in_flight_.front().second);
      }
    }
    return std::exchange(error_, Status());
  }

  std::uint64_t turns() const { return turn_; }
  std::optional<Status> outcome(std::uint64_t turn) const {
    const MutexLock lock(mutex_);
    const auto found = outcomes_.find(turn);
    return found == outcomes_.end() ? std::nullopt : std::optional<Status>(found->second);
  }
  bool wait_for_turn(std::uint64_t turn, Deadline deadline) const {
    const MutexLock lock(mutex_);
    // A turn that is neither queued nor remembered was forgotten: it has ended.
    const auto is_queued = [&]() REQUIRES_LOCK(mutex_) {
      return std::any_of(in_flight_.begin(), in_flight_.end(),
                         [&](const auto& entry) { return entry.first == turn; });
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
  void tidy_what_was_read(Deadline deadline) { writer_.tidy_what_was_read(deadline); }
  // Takes away the folder on the node's own disk once no rank has a share in it.
  void leave_node() {
    std::error_code error;
    if (!options_.local.empty()) std::filesystem::remove(options_.local, error);
  }

 private:
  // Marks a slot as taken; waits while the writer has them all.
  Result<Slot*> free_slot() {
    const Deadline deadline = Deadline::after(options_.limit + std::chrono::seconds(5));
    const MutexLock lock(mutex_);
    for (;;) {
      if (has_ended_) return invalid("checkpoint: nothing can be saved after finish()");
      for (Slot& slot : slots_) {
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
  void release(Slot* slot) {
    const MutexLock lock(mutex_);
    slot->is_busy = false;
    changed_.notify_all();
  }

  // What is saved next: mostly the same tensors as before.
  Status look_at(const Contents& contents) {
    if (layout_ && fits(layout_->plan, contents)) return {};
    OK_OR_RETURN(layout, lay_out(contents, options_.rank, options_.world_size));
    layout_ = std::move(layout);
    return {};
  }

  // How often the caller asked for that step before. A count of all saves would part for good from the other
  // ranks' when one of this rank fails, or is not asked for.
  std::uint64_t count(Step step) {
    const std::uint64_t before = asked_[step]++;
    auto least = asked_.begin();
    if (asked_.size() > kAsked) asked_.erase(least->first == step ? std::next(least) : least);
    return before;
  }

  // All of a step but the bytes of its tensors.
  StepInFlight describe(Slot& slot, const Contents& contents, std::uint64_t repeat) {
    StepInFlight step;
    step.slot = &slot;
    step.layout = slot.layout;
    step.turn = turn_++;
    step.repeat = repeat;
    step.deadline = Deadline::after(options_.limit);
    step.head.step = contents.step;
    step.head.save = save_name(options_.run, options_.writer, contents.step, repeat);
    step.head.run = options_.run;
    step.head.world_size = options_.world_size;
    step.marker.save = step.head.save;
    step.marker.layout = slot.layout->plan.layout;
    step.marker.rank_state = contents.rank_state;
    if (options_.compares_ranks) step.marker.samples = samples_of(contents, slot.layout->plan);
    if (options_.rank.value == 0) {
      step.head.state = contents.state;
      step.head.hyper_parameters = contents.hyper_parameters;
    }
    for (Arriving& part : slot.arriving) part.restart();
    return step;
  }

  // To the writer's thread; returns the error of an earlier step, once.
  Status hand_over(StepInFlight step) {
    const MutexLock lock(mutex_);
    in_flight_.push_back({step.turn, step.head.step});
    queue_.push_back(std::move(step));
    changed_.notify_all();
    return std::exchange(error_, Status());
  }

  using Queue = std::deque<StepInFlight>;
  // Waits for a step in one of the queues; nothing once the thread shall end.
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

  // The writer thread: to shared storage, or to the node's own disk, which frees the memory.
  void write_all(const StopToken& stop) {
    step_back(kWriterNice);
    while (auto step = next_of(&Impl::queue_, stop)) {
      name_tensors(*step);
      if (options_.local.empty()) {
        commit(*step, stop);
        continue;
      }
      wait_for_drain(stop);
      keep_on_node(*step, stop);
      const MutexLock lock(mutex_);
      draining_ += 1;
      drains_.push_back(std::move(*step));
      changed_.notify_all();
    }
  }

  // Until fewer than kKept steps are on the node's own disk: the death of the node takes no more of them.
  void wait_for_drain(const StopToken& stop) {
    const MutexLock lock(mutex_);
    while (draining_ >= kKept && !stop.stop_requested())
      changed_.wait(mutex_, Deadline::after(std::chrono::hours(1)));
  }

  // Not for the caller's thread: there may be ten thousand tensors.
  void name_tensors(StepInFlight& step) const {
    if (options_.rank.value != 0) return;
    for (std::size_t p = 0; p < kParts.size(); ++p) step.head.tensors[p] = step.layout->plan.parts[p].tensors;
  }

  // Where the node's disk refuses, the share stays in memory and goes straight to shared storage.
  void keep_on_node(StepInFlight& step, const StopToken& stop) {
    Status status = writer_.keep_on_node(step, stop);
    if (status.ok()) release(std::exchange(step.slot, nullptr));
    const MutexLock lock(mutex_);
    local_problem_ = std::move(status);
  }

  // The second thread, with a node's own disk: from there to shared storage.
  void drain_all(const StopToken& stop) {
    step_back(kDrainNice);
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
      times->local_problem = local_problem_;
      times_ = std::move(*times);
    }
    end_step(step, times.status());
  }

  void end_step(StepInFlight& step, Status status) {
    status = std::move(status).with_context(format("checkpoint step {}", step.head.step));
    if (step.slot != nullptr) {
      wait_for_copy(step);  // a save that failed early: the caller may still be filling it
      release(std::exchange(step.slot, nullptr));
    }
    const MutexLock lock(mutex_);
    outcomes_[step.turn] = status;
    if (outcomes_.size() > kOutcomes) outcomes_.erase(outcomes_.begin());
    if (!status.ok() && error_.ok()) error_ = std::move(status);
    std::erase_if(in_flight_, [&](const auto& entry) { return entry.first == step.turn; });
    changed_.notify_all();
  }

  // Constant after construction.
  const SaverOptions options_;
  // Used by the caller's thread only.
  std::uint64_t turn_ = 0;
  std::map<Step, std::uint64_t> asked_;  // how often for each, the last kAsked steps
  SaveLayoutPointer layout_;             // of the tensors saved last
  // Used by the threads, and by the caller's once they have ended.
  StepWriter writer_{options_};
  // A slot belongs to the caller while it is filled and to the step that has it then; is_busy is guarded by
  // mutex_.
  std::array<Slot, kSlots> slots_;
  mutable Mutex mutex_;
  mutable Condition changed_;
  Queue queue_ GUARDED_BY(mutex_);
  Queue drains_ GUARDED_BY(mutex_);              // on the node's own disk, or refused by it
  std::size_t draining_ GUARDED_BY(mutex_) = 0;  // those, and the one that is on its way from there
  std::deque<std::pair<std::uint64_t, Step>> in_flight_ GUARDED_BY(mutex_);  // neither published nor failed
  bool has_ended_ GUARDED_BY(mutex_) = false;
  Status error_ GUARDED_BY(mutex_);
  Status local_problem_ GUARDED_BY(mutex_);
  std::map<std::uint64_t, Status> outcomes_ GUARDED_BY(mutex_);  // by turn, the last kOutcomes
  std::optional<SaveTimes> times_ GUARDED_BY(mutex_);
  Thread thread_;   // these two last: they use all of the above
  Thread drainer_;  // with a node's own disk only
};

Saver::Saver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Saver::~Saver() = default;

Result<std::unique_ptr<Saver>> Saver::create(SaverOptions options) {
  RETURN_IF_ERROR(check_options(options));
  RETURN_IF_ERROR(make_directories(options.directory));
  if (options.rank.value == 0) {
    RETURN_IF_ERROR(check_owner(options));
    (void)remove_abandoned(options.directory, RealClock().wall());
  }
  return std::unique_ptr<Saver>(new Saver(std::make_unique<Impl>(std::move(options))));
}

Status Saver::reserve(const Contents& contents) { return impl_->reserve(contents); }
Status Saver::save(const Contents& contents) { return impl_->save(contents); }
Status Saver::wait(Deadline deadline) { return impl_->wait(deadline); }

Status Saver::finish(Deadline deadline) {
  Status status = impl_->wait(deadline);
  impl_->end();
  impl_->leave_node();
  impl_->tidy_what_was_read(Deadline::after(std::min<Duration>(deadline.left(), std::chrono::seconds(1))));
  return status;
}

std::uint64_t Saver::turns() const { return impl_->turns(); }
std::optional<Status> Saver::outcome(std::uint64_t turn) const { return impl_->outcome(turn); }
bool Saver::wait_for_turn(std::uint64_t turn, Deadline deadline) const {
  return impl_->wait_for_turn(turn, deadline);
}

std::optional<SaveTimes> Saver::last_times() const { return impl_->last_times(); }
bool Saver::is_busy() const { return impl_->is_busy(); }

}  // namespace stoker::checkpoint
