#include "pack/shard/read_ahead.h"

#include <chrono>
#include <utility>

namespace stoker::pack {

namespace {

// Ranges are large enough to make locking cheap, and small because the writer may wait for one.
constexpr std::uint64_t kRangeBytes = 256u << 10;
constexpr std::size_t kRangeSamples = 64;
constexpr std::size_t kMaxRanges = 256;
constexpr std::size_t kMaxSpareBytes = 16u << 20;
constexpr auto kShortTime = std::chrono::milliseconds(5);

std::size_t capacity_of(const std::vector<LoadedSample>& samples) {
  std::size_t bytes = 0;
  for (const LoadedSample& sample : samples) bytes += sample.capacity();
  return bytes;
}

}  // namespace

bool ReadAheadBudget::try_acquire(std::uint64_t bytes) {
  if (held_.fetch_add(bytes) + bytes <= limit_) return true;
  held_ -= bytes;
  return false;
}

ReadAhead::ReadAhead(const PackPlan& plan, std::span<const sources::SourceSample> samples, FileDone done,
                     ReadAheadBudget& budget)
    : plan_(plan), samples_(samples), reader_(plan, std::move(done)), budget_(budget) {}

ReadAhead::~ReadAhead() {
  const MutexLock lock(mutex_);
  if (front_) budget_.release(front_->bytes);
  for (const RangePtr& range : ranges_) budget_.release(range->bytes);
}

LoadedSample& ReadAhead::next(LoadedSample& own) {
  const std::size_t at = next_++;
  if (front_ && at == front_->first + front_->count) retire_front();
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

// Waits for the range at the writer's position.
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
    can_help = help() == HelpResult::read_range;
  }
}

void ReadAhead::retire_front() {
  const RangePtr range = std::move(front_);
  front_ = nullptr;
  budget_.release(range->bytes);
  const std::size_t capacity = capacity_of(range->samples);
  const MutexLock lock(mutex_);
  if (spare_bytes_ + capacity <= kMaxSpareBytes) {
    spare_bytes_ += capacity;
    spare_.push_back(range);
  }
  changed_.notify_all();
}

ReadAhead::HelpResult ReadAhead::help() {
  HelpResult outcome = HelpResult::read_range;
  const RangePtr range = claim(outcome);
  if (!range) return outcome;
  if (range->samples.size() < range->count) range->samples.resize(range->count);
  for (std::size_t i = 0; i < range->count; ++i) {
    LoadedSample& sample = range->samples[i];
    reader_.read(samples_[range->first + i], sample);
    // The writer stops at this sample.
    if (!sample.status.ok()) break;
  }
  const MutexLock lock(mutex_);
  range->is_read = true;
  changed_.notify_all();
  return HelpResult::read_range;
}

void ReadAhead::wait_for_budget() {
  const MutexLock lock(mutex_);
  changed_.wait(mutex_, Deadline::after(kShortTime));
}

// Claims the next samples; else sets `outcome` to the reason.
ReadAhead::RangePtr ReadAhead::claim(HelpResult& outcome) {
  const MutexLock lock(mutex_);
  std::size_t first = claimed_;
  for (;;) {
    outcome = first == samples_.size() ? HelpResult::done : HelpResult::enough_read;
    if (outcome == HelpResult::done || ranges_.size() >= kMaxRanges) return nullptr;
    std::uint64_t bytes = 0;
    const std::size_t end = end_of_range(first, bytes);
    if (!budget_.try_acquire(bytes)) return nullptr;
    if (claimed_.compare_exchange_strong(first, end)) {
      RangePtr range = take_spare();
      range->first = first;
      range->count = end - first;
      range->bytes = bytes;
      range->is_read = false;
      ranges_.push_back(range);
      outcome = HelpResult::read_range;
      return range;
    }
    budget_.release(bytes);
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

}  // namespace stoker::pack
