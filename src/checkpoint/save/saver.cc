#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>

#include "base/file.h"
#include "base/stopwatch.h"
#include "base/thread.h"
#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/layout.h"
#include "checkpoint/retention.h"
#include "checkpoint/save/commit.h"
#include "checkpoint/save/page_buffer.h"
#include "checkpoint/save/shard_writer.h"

namespace stoker::checkpoint {

namespace {

std::uint64_t total_bytes(const std::vector<ShardFile>& files) {
  std::uint64_t sum = 0;
  for (const ShardFile& file : files) sum += file.bytes;
  return sum;
}

constexpr std::size_t kSlots = 2;

// A copy of this rank's share, and everything else the writer needs of the step.
struct Slot {
  std::array<PageBuffer, 2> data;  // by Part, in the order of the file
  SavePlan plan;
  std::array<ShardPlan, 2> shards;
  Step step;
  std::uint64_t turn = 0;
  State state;
  State rank_state;
  State hyper_parameters;
  double stall_s = 0;
  Stopwatch since_copy;
  Deadline deadline = Deadline::never();
  bool is_busy = false;
};

// Memory and file layout for a plan; nothing to do when the slot was last used for the same tensors.
Status prepare_slot(Slot& slot, SavePlan plan) {
  if (slot.plan.layout == plan.layout) return {};
  slot.plan.layout.clear();  // until all below is done the slot fits nothing
  for (const Part part : kParts) {
    const std::size_t p = static_cast<std::size_t>(part);
    if (slot.data[p].bytes().size() >= whole_pages(plan.parts[p].bytes)) continue;
    slot.data[p] = PageBuffer();  // first give back what is too small
    OK_OR_RETURN(buffer, PageBuffer::create(plan.parts[p].bytes));
    slot.data[p] = std::move(buffer);
  }
  for (std::size_t p = 0; p < kParts.size(); ++p) {
    OK_OR_RETURN(shard, plan_shard(plan.parts[p], ""));
    slot.shards[p] = std::move(shard);
  }
  slot.plan = std::move(plan);
  return {};
}

void copy_share(const Contents& contents, Slot& slot) {
  for (const Part part : kParts) {
    const std::size_t p = static_cast<std::size_t>(part);
    const std::vector<const TensorView*> views = views_of(contents, part);
    const PartPlan& plan = slot.plan.parts[p];
    for (std::size_t i = 0; i < slot.shards[p].order.size(); ++i) {
      const Slice& slice = plan.mine[slot.shards[p].order[i]];
      const std::span<const std::byte> from = bytes_of(*views[slice.tensor], slice);
      if (from.empty()) continue;
      const std::uint64_t at = slot.shards[p].file.header.entries[i].begin;
      std::memcpy(slot.data[p].bytes().data() + at, from.data(), from.size());
    }
  }
}

Manifest make_manifest(const Slot& slot, const SaverOptions& options, const std::string& save,
                       std::vector<ReadyMarker> markers) {
  Manifest manifest;
  manifest.step = slot.step;
  manifest.save = save;
  manifest.run = options.run;
  manifest.world_size = options.world_size;
  manifest.written = unix_seconds(RealClock().wall());
  manifest.state = slot.state;
  manifest.hyper_parameters = slot.hyper_parameters;
  for (std::size_t p = 0; p < kParts.size(); ++p) manifest.tensors[p] = slot.plan.parts[p].tensors;
  for (ReadyMarker& marker : markers) {
    manifest.stall_s = std::max(manifest.stall_s, marker.stall_s);
    manifest.write_s = std::max(manifest.write_s, marker.write_s);
    manifest.rank_states.push_back(std::move(marker.rank_state));
    std::move(marker.files.begin(), marker.files.end(), std::back_inserter(manifest.files));
  }
  return manifest;
}

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
    }
    changed_.notify_all();
    thread_.join();
  }

  Status reserve(const Contents& contents) {
    OK_OR_RETURN(plan, plan_save(contents, options_.rank, options_.world_size));
    std::vector<Slot*> taken;
    Status status;
    while (status.ok() && taken.size() < kSlots) {
      auto slot = free_slot();
      if (slot.ok()) taken.push_back(*slot);
      status = slot.ok() ? prepare_slot(**slot, plan) : slot.status();
    }
    for (Slot* slot : taken) release(slot);
    return status;
  }

  Status save(const Contents& contents) {
    Stopwatch stall;
    OK_OR_RETURN(plan, plan_save(contents, options_.rank, options_.world_size));
    if (contents.step.value < 0) return invalid("checkpoint: step {} is less than zero", contents.step);
    OK_OR_RETURN(slot, free_slot());
    if (Status status = fill(*slot, std::move(plan), contents); !status.ok()) {
      release(slot);
      return status;
    }
    slot->stall_s = stall.seconds();
    slot->since_copy = Stopwatch();
    slot->deadline = Deadline::after(options_.limit);
    const MutexLock lock(mutex_);
    queue_.push_back(slot);
    changed_.notify_all();
    return std::exchange(error_, Status());
  }

  Status wait(Deadline deadline) {
    const MutexLock lock(mutex_);
    while (!queue_.empty()) {
      if (!changed_.wait(mutex_, deadline) && !queue_.empty()) {
        return timeout("checkpoint step {}: still being written", queue_.front()->step);
      }
    }
    return std::exchange(error_, Status());
  }

  std::optional<SaveTimes> last_times() const {
    const MutexLock lock(mutex_);
    return times_;
  }
  bool is_busy() const {
    const MutexLock lock(mutex_);
    return !queue_.empty();
  }
  // Removes what was given up. REQUIRES: every rank is past those steps, or has_been_read() was asked.
  void tidy() {
    for (const auto& [step, folder] : given_up_) {
      // Away first: a rank that is late would otherwise write into it while it is being removed.
      const Path away = options_.directory / removed_folder_name(step);
      if (rename_path(folder, away).ok()) (void)remove_tree(away);
    }
    given_up_.clear();
  }
  // At the end no later step tells that the others have read why one was given up: each leaves a note of its
  // own when it has. A folder that is not read in time stays, without data, for the next attempt to remove.
  void tidy_what_was_read(Deadline deadline) {
    for (const auto& [step, folder] : given_up_) {
      while (!has_been_read(folder) && !deadline.passed()) RealClock().sleep(std::chrono::milliseconds(2));
    }
    std::erase_if(given_up_, [&](const auto& entry) { return !has_been_read(entry.second); });
    tidy();
  }

 private:
  bool has_been_read(const Path& folder) const {
    for (int r = 0; r < options_.world_size.value; ++r) {
      if (!path_exists(folder / failed_name(Rank{r}))) return false;
    }
    return true;
  }
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

  Status fill(Slot& slot, SavePlan plan, const Contents& contents) {
    RETURN_IF_ERROR(prepare_slot(slot, std::move(plan)));
    slot.step = contents.step;
    slot.turn = turn_++;
    slot.state = contents.state;
    slot.rank_state = contents.rank_state;
    slot.hyper_parameters = contents.hyper_parameters;
    copy_share(contents, slot);
    return {};
  }

  // The writer thread.
  void write_all(const StopToken& stop) {
    for (;;) {
      Slot* slot = nullptr;
      {
        const MutexLock lock(mutex_);
        while (queue_.empty() && !stop.stop_requested())
          changed_.wait(mutex_, Deadline::after(std::chrono::hours(1)));
        if (stop.stop_requested()) return;
        slot = queue_.front();
      }
      Status status = write_step(*slot, stop);
      const MutexLock lock(mutex_);
      if (!status.ok() && error_.ok()) {
        error_ = std::move(status).with_context(format("checkpoint step {}", slot->step));
      }
      slot->is_busy = false;
      queue_.pop_front();
      changed_.notify_all();
    }
  }

  Status write_step(Slot& slot, const StopToken& stop) {
    PendingStep pending(options_, slot.step, slot.turn, slot.deadline);
    std::vector<ShardFile> files;
    const Status opened = pending.open();
    // A folder that was there before belongs to somebody else: nothing of it is touched.
    if (opened.code() == Code::exists) return opened;
    Status status = opened.ok() ? write_share_and_commit(slot, pending, files, stop) : opened;
    if (status.ok()) return status;
    status = pending.explain(status);
    pending.give_up(status, files);
    if (options_.rank.value == 0) given_up_.emplace_back(slot.step, pending.folder());
    return status;
  }

  Status write_share_and_commit(Slot& slot, PendingStep& pending, std::vector<ShardFile>& files,
                                const StopToken& stop) {
    RETURN_IF_ERROR(write_share(slot, pending, files, stop));
    RETURN_IF_ERROR(pending.sync_folders(files));
    const double write_s = slot.since_copy.lap();
    std::uint64_t bytes = total_bytes(files);
    RETURN_IF_ERROR(pending.tell_ready(
        {pending.save(), slot.plan.layout, files, slot.rank_state, slot.stall_s, write_s}));
    if (options_.rank.value == 0) {
      OK_OR_RETURN(markers, pending.collect(stop));
      bytes = 0;
      for (const ReadyMarker& marker : markers) bytes += total_bytes(marker.files);
      RETURN_IF_ERROR(pending.publish(make_manifest(slot, options_, pending.save(), std::move(markers))));
      // After this point the step is saved: nothing below may turn that into an error.
      tidy();
      (void)keep_newest(options_.directory, options_.keep, options_.reading);
      if (options_.observe) options_.observe(CommitPoint::pruned);
    } else {
      RETURN_IF_ERROR(pending.await_outcome(stop));
    }
    const MutexLock lock(mutex_);
    times_ = SaveTimes{slot.step, slot.stall_s, write_s, slot.since_copy.seconds(), bytes};
    return {};
  }

  Status write_share(Slot& slot, const PendingStep& pending, std::vector<ShardFile>& files,
                     const StopToken& stop) {
    for (const Part part : kParts) {
      const std::size_t p = static_cast<std::size_t>(part);
      if (slot.shards[p].order.empty()) continue;
      // Laid out anew: the header names this save.
      OK_OR_RETURN(shard, plan_shard(slot.plan.parts[p], pending.save()));
      ShardFile file{shard_path(part, options_.rank),      options_.rank,
                     shard.file.header.file_bytes,         shard.file.header.data_begin,
                     pieces_of(shard, slot.plan.parts[p]), {}};
      const std::span<const std::byte> data = slot.data[p].bytes();
      OK_OR_RETURN(blocks, write_shard(pending.folder() / file.path, shard.file.bytes,
                                       data.first(slot.plan.parts[p].bytes), stop));
      file.blocks = std::move(blocks);
      files.push_back(std::move(file));
    }
    return {};
  }

  // Constant after construction.
  const SaverOptions options_;
  // Used by the caller's thread only.
  std::uint64_t turn_ = 0;
  // Used by the writer thread only, and by tidy().
  std::vector<std::pair<Step, Path>> given_up_;
  // A slot belongs to the caller while it is filled and to the writer while it is queued; is_busy is guarded
  // by mutex_.
  std::array<Slot, kSlots> slots_;
  mutable Mutex mutex_;
  Condition changed_;
  std::deque<Slot*> queue_ GUARDED_BY(mutex_);
  bool has_ended_ GUARDED_BY(mutex_) = false;
  Status error_ GUARDED_BY(mutex_);
  std::optional<SaveTimes> times_ GUARDED_BY(mutex_);
  Thread thread_;  // last: it uses all of the above
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
  impl_->tidy_what_was_read(Deadline::after(std::min<Duration>(deadline.left(), std::chrono::seconds(1))));
  return status;
}

std::optional<SaveTimes> Saver::last_times() const { return impl_->last_times(); }
bool Saver::is_busy() const { return impl_->is_busy(); }

}  // namespace stoker::checkpoint
