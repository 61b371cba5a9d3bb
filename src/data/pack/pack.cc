#include "data/pack/pack.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <sched.h>
#include <set>
#include <utility>

#include "base/sanitizers.h"
#include "base/thread.h"
#include "data/look/arrays/hdf5_view.h"
#include "data/pack/shard/container.h"
#include "data/pack/shard/shard_writer.h"
#include "data/pack/workspace.h"

namespace stoker::data {

namespace {

// What is read ahead of all writers together may take so much memory.
constexpr std::uint64_t kMostAhead = 128u << 20;
// A thread that would have fewer files to read than this is not worth its start.
constexpr std::uint64_t kFewFiles = 8;

// All shards, by as many threads as wanted; the first error stops the others. A thread that finds no shard to
// begin reads ahead of those that write one.
class Crew {
 public:
  Crew(const PackPlan& plan, const Workspace& space, Progress& progress)
      : plan_(plan), space_(space), progress_(progress), facts_(plan.shards.size()) {
    const PackPart part = plan.options.part.value_or(PackPart{});
    for (std::size_t i = part.number - 1; i < plan.shards.size(); i += part.of) {
      mine_.push_back(i);
      files_ += plan.shards[i].files;
    }
    to_begin_ = mine_.size();
  }

  Status run() {
    std::vector<Thread> helpers;
    const auto of_use =
        static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(plan_.options.threads),
                                                 std::max<std::uint64_t>(mine_.size(), files_ / kFewFiles)));
    for (int t = 1; t < of_use; ++t) {
      helpers.emplace_back([this](const StopToken&) {
        // A table of open files of its own: with a shared one every open, read and close of small files waits
        // for the other threads. Works without privileges; where it does not, nothing is lost.
        // ThreadSanitizer would take files of equal number in two tables for one.
        if (!kHasThreadSanitizer) (void)::unshare(CLONE_FILES);
        work();
        help_others();
      });
    }
    work();
    help_others();
    helpers.clear();
    MutexLock lock(mutex_);
    if (status_.code() == Code::cancelled) {
      return cancelled("{}: stopped: {} of {} shards are done", printable(plan_.options.out.string()), done(),
                       mine_.size())
          .cure("the same command again: it goes on from there");
    }
    return status_;
  }

  std::uint64_t kept() const { return kept_; }
  std::uint64_t shards() const { return mine_.size(); }
  /// REQUIRES: run() was ok. Empty ones are another part's.
  std::vector<ShardFacts>& facts() { return facts_; }

 private:
  // A shard that a thread writes.
  struct Lane {
    std::size_t shard = 0;
    std::shared_ptr<ReadAhead> samples;
    std::unique_ptr<ShardWriting> writing;
    bool has_work() const { return writing && !writing->lane().is_empty(); }
  };

  // Two shards in turns where each block gets a SHA-256 and there are enough of them for all threads: what
  // both have written is hashed in step.
  void work() {
    const bool in_step = plan_.options.hash == formats::BlockHash::sha256 &&
                         mine_.size() >= 2 * static_cast<std::size_t>(plan_.options.threads);
    std::array<Lane, 2> lanes;
    const auto busy = std::span(lanes).first(in_step ? 2 : 1);
    for (;;) {
      for (Lane& lane : busy) {
        if (Status status = advance(lane, in_step ? Hashing::later : Hashing::now); !status.ok()) {
          for (const Lane& begun : busy) {
            if (begun.writing) space_.drop_shard(plan_.shards[begun.shard]);
          }
          return fail(std::move(status));
        }
      }
      if (lanes[0].has_work() && lanes[1].has_work()) {
        Sha256Lane::run_both(lanes[0].writing->lane(), lanes[1].writing->lane());
      } else if (lanes[0].has_work()) {
        lanes[0].writing->lane().run();
      } else if (lanes[1].has_work()) {
        lanes[1].writing->lane().run();
      } else {
        return;
      }
    }
  }

  // Writes samples, of the next shard when one is done, until there is something to hash or nothing is left.
  Status advance(Lane& lane, Hashing hashing) {
    while (!lane.has_work()) {
      if (!lane.writing) RETURN_IF_ERROR(begin_next(lane, hashing));
      if (!lane.writing) return {};
      if (!lane.writing->is_complete()) {
        RETURN_IF_ERROR(lane.writing->write_next());
        continue;
      }
      OK_OR_RETURN(facts, space_.finish_shard(plan_.shards[lane.shard], *lane.writing));
      facts_[lane.shard] = std::move(facts);
      lane.writing.reset();
      const MutexLock lock(mutex_);
      std::erase(being_read_, std::exchange(lane.samples, nullptr));
    }
    return {};
  }

  // Until nothing is left to read.
  void help_others() {
    while (const std::shared_ptr<ReadAhead> samples = most_left()) {
      if (samples->help() == ReadAhead::Help::too_soon) samples->wait_for_room();
    }
  }

  // Of the shards being written the one with most that nobody has begun to read; none when there will be no
  // such shard any more.
  std::shared_ptr<ReadAhead> most_left() {
    const MutexLock lock(mutex_);
    while (!is_stopped_) {
      std::shared_ptr<ReadAhead> most;
      for (const auto& samples : being_read_) {
        if (samples->left() > (most ? most->left() : 0)) most = samples;
      }
      if (most || to_begin_ == 0) return most;
      has_begun_.wait(mutex_, Deadline::after(std::chrono::milliseconds(20)));
    }
    return nullptr;
  }

  void begun(std::shared_ptr<ReadAhead> samples) {
    const MutexLock lock(mutex_);
    if (samples) being_read_.push_back(std::move(samples));
    --to_begin_;
    has_begun_.notify_all();
  }

  // The next shard that is not there yet; none when all are taken.
  Status begin_next(Lane& lane, Hashing hashing) {
    for (std::size_t at = next_++; at < mine_.size(); at = next_++) {
      lane.shard = mine_[at];
      const ShardSpec& spec = plan_.shards[lane.shard];
      if (std::optional<ShardFacts> before = space_.finished(spec.file)) {
        facts_[lane.shard] = std::move(*before);
        ++kept_;
        done_files_ += spec.files;
        begun(nullptr);
        continue;
      }
      lane.samples = std::make_shared<ReadAhead>(
          plan_, spec.samples, [this](std::uint64_t bytes) { return file_done(bytes); }, budget_);
      OK_OR_RETURN(writing, space_.begin_shard(plan_, spec, lane.samples, hashing));
      lane.writing = std::move(writing);
      begun(lane.samples);
      return {};
    }
    return {};
  }

  // By this call or one before it, which may have done others than this one has come to.
  std::size_t done() const {
    std::size_t shards = 0;
    for (const std::size_t i : mine_) shards += space_.has_finished(plan_.shards[i].file) ? 1 : 0;
    return shards;
  }

  bool file_done(std::uint64_t bytes) {
    const std::uint64_t done = done_files_ += bytes == 0 ? 0 : 1;
    progress_.report({.done = done, .total = files_, .unit = "files", .bytes = {done_bytes_ += bytes}});
    if (progress_.stop_requested()) fail(cancelled("stopped"));
    return !is_stopped_.load(std::memory_order_relaxed);
  }

  // Keeps the first error that is one: that others were stopped by it is none.
  void fail(Status status) {
    is_stopped_ = true;
    next_ = mine_.size();
    MutexLock lock(mutex_);
    has_begun_.notify_all();
    if (status_.ok() || (status_.code() == Code::cancelled && status.code() != Code::cancelled)) {
      status_ = std::move(status);
    }
  }

  const PackPlan& plan_;
  const Workspace& space_;
  Progress& progress_;
  std::vector<std::size_t> mine_;  // the shards of this part
  std::uint64_t files_ = 0;

  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> kept_{0};
  std::atomic<std::uint64_t> done_files_{0};
  std::atomic<std::uint64_t> done_bytes_{0};
  std::atomic<bool> is_stopped_{false};
  std::vector<ShardFacts> facts_;  // each element is written by one thread
  AheadBudget budget_{kMostAhead};

  Mutex mutex_;
  Condition has_begun_;
  std::vector<std::shared_ptr<ReadAhead>> being_read_ GUARDED_BY(mutex_);
  std::size_t to_begin_ GUARDED_BY(mutex_) = 0;  // shards that are neither begun nor there already
  Status status_ GUARDED_BY(mutex_);
};

}  // namespace

namespace {

// Made from what is published, so that a kill before it costs nothing but `data index --export hdf5`.
Status write_views(const Path& out, const formats::Manifest& manifest) {
  if (manifest.schema.container != to_text(ContainerKind::hdf5)) return {};
  return write_hdf5_views(out, ViewedSplits::several_shards).status();
}

}  // namespace

Result<PackSummary> run_pack(const PackPlan& plan, Progress& progress) {
  OK_OR_RETURN(space, Workspace::open(plan.options.out, plan.outline, plan.options.part));
  PackSummary summary;
  if (space.state() == Workspace::State::published) {
    RETURN_IF_ERROR(space.clean());
    OK_OR_RETURN(manifest, formats::read_manifest(plan.options.out));
    summary.manifest = std::move(manifest);
    summary.left_out = counted(summary.manifest.left_out);
    summary.shards_kept = plan.shards.size();
    return summary;
  }
  summary.was_restarted = space.state() == Workspace::State::restarted;
  Crew crew(plan, space, progress);
  if (Status status = crew.run(); !status.ok()) {
    if (!space.has_finished_any()) space.discard();  // else the next call goes on from what is finished
    return status;
  }
  summary.shards_kept = crew.kept();
  summary.shards_done = crew.shards();
  if (plan.options.part) return summary;
  Result<Assembly> whole = assemble(plan.outline, crew.facts());
  if (!whole.ok()) {
    space.discard();  // the source must change first, and then nothing of this is of use
    return whole.status();
  }
  RETURN_IF_ERROR(space.publish(whole->manifest, whole->index, whole->left_out_csv));
  RETURN_IF_ERROR(write_views(plan.options.out, whole->manifest));
  summary.left_out = whole->left_out;
  summary.manifest = std::move(whole->manifest);
  return summary;
}

bool is_ready_to_merge(const Path& out) { return Workspace::is_ready_to_merge(out); }

Result<PackSummary> merge_parts(const Path& out) {
  OK_OR_RETURN(space, Workspace::open_for_merge(out));
  PackSummary summary;
  if (space.state() == Workspace::State::published) {
    RETURN_IF_ERROR(space.clean());
    OK_OR_RETURN(manifest, formats::read_manifest(out));
    summary.manifest = std::move(manifest);
    summary.left_out = counted(summary.manifest.left_out);
    return summary;
  }
  const Outline& outline = space.outline();
  std::vector<ShardFacts> facts;
  std::vector<std::string> missing;
  std::set<std::size_t> parts;
  for (std::size_t i = 0; i < outline.shards.size(); ++i) {
    if (std::optional<ShardFacts> shard = space.finished(outline.shards[i].file)) {
      facts.push_back(std::move(*shard));
      continue;
    }
    missing.push_back(outline.shards[i].file);
    parts.insert(i % outline.parts + 1);
  }
  if (!missing.empty()) {
    std::vector<std::string> numbers;
    for (std::size_t part : parts) numbers.push_back(format("{}/{}", part, outline.parts));
    return not_found("{}: {} of {} shards are not packed yet, the first is {}", printable(out.string()),
                     missing.size(), outline.shards.size(), missing[0])
        .cure("stoker data pack ... --part {}", join(numbers, ", --part "));
  }
  OK_OR_RETURN(whole, assemble(outline, facts));
  RETURN_IF_ERROR(space.publish(whole.manifest, whole.index, whole.left_out_csv));
  RETURN_IF_ERROR(write_views(out, whole.manifest));
  summary.left_out = whole.left_out;
  summary.shards_done = outline.shards.size();
  summary.manifest = std::move(whole.manifest);
  return summary;
}

}  // namespace stoker::data
