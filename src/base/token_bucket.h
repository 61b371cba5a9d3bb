// Limits a rate of bytes. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>

#include "base/thread.h"
#include "stoker/bytes.h"
#include "stoker/time.h"

namespace stoker {

class TokenBucket {
 public:
  /// Bytes per second; 0: no limit. After a pause, a tenth of a second of the rate passes at once.
  explicit TokenBucket(ByteCount rate) : rate_(static_cast<double>(rate.value)) {}

  /// Blocks until `bytes` more may pass. Threads take turns.
  void take(std::uint64_t bytes) {
    if (rate_ == 0) return;
    MonoTime until;
    {
      const MutexLock lock(mutex_);
      const MonoTime now = RealClock().mono();
      const auto burst = std::chrono::duration_cast<Duration>(Seconds(0.1));
      free_at_ = std::max(free_at_, now - burst) +
                 std::chrono::duration_cast<Duration>(Seconds(static_cast<double>(bytes) / rate_));
      until = free_at_;
    }
    std::this_thread::sleep_until(until);
  }

 private:
  const double rate_;
  Mutex mutex_;
  MonoTime free_at_ STOKER_GUARDED_BY(mutex_);  // everything taken has passed
};

}  // namespace stoker
