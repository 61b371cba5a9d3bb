#include "loader/fetcher.h"

#include <algorithm>
#include <numeric>

#include "base/stopwatch.h"

namespace stoker::loader {
namespace {

// Between two files that are read together: a tar header and padding, or an unneeded file. Reading the gap
// is cheaper than another call.
constexpr std::uint64_t kGap = 16u << 10;
// Bounds the memory of a run; a longer file is a separate run.
constexpr std::uint64_t kLongestRun = 4u << 20;
// Files to prefetch from memory ahead of the current one.
constexpr std::size_t kAhead = 6;

}  // namespace

void Fetcher::begin(std::span<const dataset::Locator> files) {
  files_.assign(files.begin(), files.end());
  order_.resize(files.size());
  std::iota(order_.begin(), order_.end(), 0u);
  runs_.clear();
  run_ = 0;
  is_in_buffer_ = false;
  if (memory_) return;
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(files_[a].shard, files_[a].offset) < std::pair(files_[b].shard, files_[b].offset);
  });
  for (std::size_t place = 0; place < order_.size(); ++place) {
    const dataset::Locator& file = files_[order_[place]];
    if (runs_.empty() || !fits(runs_.back(), file)) runs_.push_back({place, place, file.offset, 0});
    Run& run = runs_.back();
    run.end = place + 1;
    run.length = std::max(run.offset + run.length, file.offset + file.length) - run.offset;
  }
  if (!is_slow_) return;
  for (const Run& run : runs_) source_.will_need(files_[order_[run.begin]].shard, run.offset, run.length);
}

bool Fetcher::fits(const Run& run, const dataset::Locator& file) const {
  // The bytes between files of a packed shard may be unneeded chunks. In order, each chunk is unpacked once.
  if (source_.samples().sections()[file.shard]->chunks()) return false;
  const std::uint64_t end = run.offset + run.length;
  return file.shard == files_[order_[run.begin]].shard && file.offset <= end + kGap &&
         file.length <= kLongestRun && file.offset + file.length - run.offset <= kLongestRun;
}

const Fetcher::Run& Fetcher::run_of(std::size_t place) {
  while (place >= runs_[run_].end) {
    ++run_;
    is_in_buffer_ = false;
  }
  return runs_[run_];
}

Status Fetcher::read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) {
  const Stopwatch watch;
  ++reads_;
  STOKER_RETURN_IF_ERROR(source_.read(shard, offset, out));
  is_slow_ = watch.seconds() > kSlowRead;
  return Status();
}

Result<std::span<const std::byte>> Fetcher::view(std::size_t place) {
  const dataset::Locator& file = files_[order_[place]];
  if (memory_) {
    if (place + kAhead < files_.size()) memory_->prefetch(files_[order_[place + kAhead]]);
    return memory_->view(file, buffer_);
  }
  const Run& run = run_of(place);
  if (!is_in_buffer_) {
    buffer_.resize(run.length);
    const Status status = read(file.shard, run.offset, buffer_);
    if (!status.ok() && run.end - run.begin > 1) {  // perhaps only a different file of the run is missing
      buffer_.resize(file.length);
      STOKER_RETURN_IF_ERROR(read(file.shard, file.offset, buffer_));
      return std::span<const std::byte>(buffer_);
    }
    STOKER_RETURN_IF_ERROR(status);
    is_in_buffer_ = true;
  }
  return std::span<const std::byte>(buffer_).subspan(file.offset - run.offset, file.length);
}

Status Fetcher::copy(std::size_t place, std::span<std::byte> out) {
  const dataset::Locator& file = files_[order_[place]];
  if (!memory_) {
    const Run& run = run_of(place);
    if (run.end - run.begin == 1) return read(file.shard, file.offset, out);
  }
  STOKER_ASSIGN_OR_RETURN(bytes, view(place));
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return Status();
}

}  // namespace stoker::loader
