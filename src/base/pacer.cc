#include "base/pacer.h"

#include <algorithm>

#include "base/stopwatch.h"

namespace stoker {
namespace {

constexpr Duration kSlice = std::chrono::milliseconds(100);
constexpr double kSmallestPiece = 4096;
constexpr double kLargestPiece = 4 << 20;

}  // namespace

void Pacer::acquire(std::uint64_t bytes, const std::function<bool()>& should_stop) {
  if (rate_ == 0) return;
  MonoTime slot;
  {
    const MutexLock lock(mutex_);
    slot = std::max(due_, mono_now());  // unused time does not accumulate
    due_ = slot + std::chrono::duration_cast<Duration>(Seconds(static_cast<double>(bytes) / rate_));
  }
  for (Duration left = slot - mono_now(); left > Duration::zero() && !should_stop(); left = slot - mono_now())
    std::this_thread::sleep_for(std::min(left, kSlice));
}

std::uint64_t Pacer::piece() const {
  if (rate_ == 0) return static_cast<std::uint64_t>(kLargestPiece);
  return static_cast<std::uint64_t>(std::clamp(rate_ / 10, kSmallestPiece, kLargestPiece));
}

}  // namespace stoker
