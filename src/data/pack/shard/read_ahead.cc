#include "data/pack/shard/read_ahead.h"

#include <chrono>
#include <utility>

namespace stoker::data {

namespace {

// A range is as much as makes taking a lock for it cheap, and no more: the writer may come to wait for it.
constexpr std::uint64_t kRangeBytes = 256u << 10;
constexpr std::size_t kRangeSamples = 64;
constexpr std::size_t kMostRanges = 256;
constexpr std::size_t kMostSpareBytes = 16u << 20;
constexpr auto kShortTime = std::chrono::milliseconds(5);

std::size_t capacity_of(const std::vector<ReadSample>& samples) {
  std::size_t bytes = 0;
  for (const ReadSample& sample : samples) bytes += sample.capacity();
  return bytes;
}

}  // namespace

bool AheadBudget::take(std::uint64_t bytes) {
  if (taken_.fetch_add(bytes) + bytes <= limit_) return true;
  taken_ -= bytes;
  return false;
}

ReadAhead::ReadAhead(const PackPlan& plan, std::span<const SourceSample> samples, FileDone done,
                     AheadBudget& budget)
    : plan_(plan), samples_(samples), reader_(plan, std::move(done)), budget_(budget) {}

ReadAhead::~ReadAhead() {
  const MutexLock lock(mutex_);
  if (front_) budget_.give_back(front_->bytes);
  for (const RangePtr& range : ranges_) budget_.give_back(range->bytes);
}

ReadSample& ReadAhead::next(ReadSample& own) {
  const std::size_t at = next_++;
  if (front_ && at == front_->first + front_->count) put_front_away();
  if (!front_) {
    std::size_t expected = at;
    if (claimed_.compare_exchange_strong(expected, at + 1)) {
      reader_.read(samples_[at], own);
      return own;
    }
    wait_for_front();
  }
  return front_->samples[at - front_->first];
}

// The range that the writer has come to.
void ReadAhead::wait_for_front() {
  for (bool can_help = true;;) {
    {
      const MutexLock lock(mutex_);
      while (!can_help && !ranges_.front()->is_read) changed_.wait(mutex_, Deadline::after(kShortTime));
      if (ranges_.front()->is_read) {
        front_ = std::move(ranges_.front());
        ranges_.pop_front();
        return;
      }
    }
    can_help = help() == Help::given;
  }
}

void ReadAhead::put_front_away() {
  const RangePtr range = std::move(front_);
  front_ = nullptr;
  budget_.give_back(range->bytes);
  const std::size_t capacity = capacity_of(range->samples);
  const MutexLock lock(mutex_);
  if (spare_bytes_ + capacity <= kMostSpareBytes) {
    spare_bytes_ += capacity;
    spare_.push_back(range);
  }
  changed_.notify_all();
}

ReadAhead::Help ReadAhead::help() {
  Help outcome = Help::given;
  const RangePtr range = claim(outcome);
  if (!range) return outcome;
  if (range->samples.size() < range->count) range->samples.resize(range->count);
  for (std::size_t i = 0; i < range->count; ++i) {
    ReadSample& sample = range->samples[i];
    reader_.read(samples_[range->first + i], sample);
    // The writer goes no further than this one.
    if (!sample.status.ok()) break;
  }
  const MutexLock lock(mutex_);
  range->is_read = true;
  changed_.notify_all();
  return Help::given;
}

void ReadAhead::wait_for_room() {
  const MutexLock lock(mutex_);
  changed_.wait(mutex_, Deadline::after(kShortTime));
}

// The next samples that nobody has begun; else `outcome` says why none.
ReadAhead::RangePtr ReadAhead::claim(Help& outcome) {
  const MutexLock lock(mutex_);
  std::size_t first = claimed_;
  for (;;) {
    outcome = first == samples_.size() ? Help::over : Help::too_soon;
    if (outcome == Help::over || ranges_.size() >= kMostRanges) return nullptr;
    std::uint64_t bytes = 0;
    const std::size_t end = end_of_range(first, bytes);
    if (!budget_.take(bytes)) return nullptr;
    if (claimed_.compare_exchange_strong(first, end)) {
      RangePtr range = take_spare();
      range->first = first;
      range->count = end - first;
      range->bytes = bytes;
      range->is_read = false;
      ranges_.push_back(range);
      outcome = Help::given;
      return range;
    }
    budget_.give_back(bytes);
  }
}

std::size_t ReadAhead::end_of_range(std::size_t first, std::uint64_t& bytes) const {
  std::size_t end = first;
  while (end < samples_.size() && end - first < kRangeSamples) {
    std::uint64_t more = 0;
    for (std::uint32_t i = 0; i < samples_[end].files; ++i) more += plan_.source.file(samples_[end], i).bytes;
    if (end > first && bytes + more > kRangeBytes) break;
    bytes += more;
    ++end;
  }
  return end;
}

ReadAhead::RangePtr ReadAhead::take_spare() {
  if (spare_.empty()) return std::make_shared<Range>();
  RangePtr range = std::move(spare_.back());
  spare_.pop_back();
  spare_bytes_ -= capacity_of(range->samples);
  return range;
}

}  // namespace stoker::data
