// Delivers the samples of a shard in order to the thread that writes it. Threads without a shard read ahead
// for it, so that a few shards keep many threads busy and slow storage serves many requests at once. The
// written bytes do not depend on helpers.
//
// Samples are claimed from the front: by the writer one at a time, by a helper in ranges. A range belongs to
// the helper until it is read, then to the writer. If the writer reaches an unread range, it reads a later
// range meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/thread.h"
#include "pack/pack.h"
#include "pack/shard/source_sample_reader.h"

namespace stoker::pack {

/// Limits the bytes that all shards of a pack hold ahead of their writers. Thread-safe.
class ReadAheadBudget {
 public:
  explicit ReadAheadBudget(std::uint64_t bytes) : limit_(bytes) {}
  /// False if the limit would be exceeded.
  bool try_acquire(std::uint64_t bytes);
  void release(std::uint64_t bytes) { held_ -= bytes; }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> held_{0};
};

class ReadAhead {
 public:
  enum class HelpResult {
    read_range,   ///< a range was read
    enough_read,  ///< the budget is used up: the writer comes first
    done,         ///< no samples are left to claim
  };

  /// `plan`, `samples` and `budget` must outlive it.
  ReadAhead(const PackPlan& plan, std::span<const sources::SourceSample> samples, FileDone done,
            ReadAheadBudget& budget);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  const SourceSampleReader& reader() const { return reader_; }
  /// Whether next() has returned all samples.
  bool is_done() const { return next_ == samples_.size(); }
  /// The sample that next() will return. REQUIRES: !is_done().
  const sources::SourceSample& upcoming() const { return samples_[next_]; }
  /// The next sample, read into `own` or by a helper; valid until the next call. Only for the writer thread.
  /// REQUIRES: !is_done().
  LoadedSample& next(LoadedSample& own);

  /// Number of unclaimed samples. Any thread.
  std::size_t unclaimed() const { return samples_.size() - claimed_.load(std::memory_order_relaxed); }
  /// Reads a range ahead of the writer. Any thread.
  HelpResult help();
  /// Blocks until help() may succeed, or for a short time. Any thread.
  void wait_for_budget();

 private:
  // Samples that one thread reads.
  struct Range {
    std::size_t first = 0;
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    std::vector<LoadedSample> samples;  // may exceed `count`: memory of earlier samples is reused
    bool is_read = false;
  };
  using RangePtr = std::shared_ptr<Range>;

  RangePtr claim(HelpResult& outcome);
  std::size_t end_of_range(std::size_t first, std::uint64_t& bytes) const;
  RangePtr take_spare() STOKER_REQUIRES_LOCK(mutex_);
  void wait_for_front();
  void retire_front();

  const PackPlan& plan_;
  const std::span<const sources::SourceSample> samples_;
  const SourceSampleReader reader_;
  ReadAheadBudget& budget_;

  // Only for the writer thread.
  std::size_t next_ = 0;
  RangePtr front_;  // delivers one sample after the other

  std::atomic<std::size_t> claimed_{0};  // samples before this one are claimed
  Mutex mutex_;
  Condition changed_;
  std::deque<RangePtr> ranges_ STOKER_GUARDED_BY(mutex_);  // claimed, in order
  std::vector<RangePtr> spare_ STOKER_GUARDED_BY(mutex_);  // with reusable memory
  std::size_t spare_bytes_ STOKER_GUARDED_BY(mutex_) = 0;
};

}  // namespace stoker::pack
