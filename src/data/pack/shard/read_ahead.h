// The samples of a shard in order, for the one thread that writes them; threads that have no shard of their
// own read ahead of it, so that a few shards keep many threads busy, and slow storage answers many at once.
// What is written is the same with and without them.
//
// Samples are claimed from the front on: by the writer one at a time, by a helper in ranges. A range is the
// helper's until it is read, then the writer's. A writer that comes to a range that is not read yet reads one
// further on meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/thread.h"
#include "data/pack/pack.h"
#include "data/pack/shard/sample_reader.h"

namespace stoker::data {

/// Bytes that all shards of a packing together may hold ahead of their writers. Thread-safe.
class AheadBudget {
 public:
  explicit AheadBudget(std::uint64_t bytes) : limit_(bytes) {}
  /// False when they would be too many.
  bool take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) { taken_ -= bytes; }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> taken_{0};
};

class ReadAhead {
 public:
  enum class Help {
    given,     ///< a range was read
    too_soon,  ///< enough is read: the writer comes first
    over,      ///< nothing is left to begin
  };

  /// `plan`, `samples` and `budget` must outlive it.
  ReadAhead(const PackPlan& plan, std::span<const SourceSample> samples, FileDone done, AheadBudget& budget);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  const SampleReader& reader() const { return reader_; }
  /// Whether next() has given all samples.
  bool is_over() const { return next_ == samples_.size(); }
  /// What next() will give. REQUIRES: not over.
  const SourceSample& upcoming() const { return samples_[next_]; }
  /// The next sample, in `own` unless a helper has read it; the caller's until the next call. One thread
  /// only. REQUIRES: not over.
  ReadSample& next(ReadSample& own);

  /// How many samples nobody has begun. Any thread.
  std::size_t left() const { return samples_.size() - claimed_.load(std::memory_order_relaxed); }
  /// Reads a range ahead of the writer. Any thread.
  Help help();
  /// Blocks until help() is worth another call, or for a short time. Any thread.
  void wait_for_room();

 private:
  // Samples that one thread reads.
  struct Range {
    std::size_t first = 0;
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    std::vector<ReadSample> samples;  // more than `count` where the memory of others is kept
    bool is_read = false;
  };
  using RangePtr = std::shared_ptr<Range>;

  RangePtr claim(Help& outcome);
  std::size_t end_of_range(std::size_t first, std::uint64_t& bytes) const;
  RangePtr take_spare() REQUIRES_LOCK(mutex_);
  void wait_for_front();
  void put_front_away();

  const PackPlan& plan_;
  const std::span<const SourceSample> samples_;
  const SampleReader reader_;
  AheadBudget& budget_;

  // The writer's.
  std::size_t next_ = 0;
  RangePtr front_;  // of which it takes one sample after the other

  std::atomic<std::size_t> claimed_{0};  // samples before this one are somebody's
  Mutex mutex_;
  Condition changed_;
  std::deque<RangePtr> ranges_ GUARDED_BY(mutex_);  // claimed, in order
  std::vector<RangePtr> spare_ GUARDED_BY(mutex_);  // with the memory of what they held
  std::size_t spare_bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace stoker::data
