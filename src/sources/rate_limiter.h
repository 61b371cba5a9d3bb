// Limits the rate of requests to a metadata server. Thread-safe: all threads share one limit.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker::sources {

class RateLimiter {
 public:
  /// At most `per_s` requests per second; 0: no limit.
  explicit RateLimiter(double per_s = 0);
  bool is_limited() const { return interval_ns_ != 0; }
  /// Blocks until the next request is due: at most (threads / per_s) seconds.
  void acquire() {
    if (interval_ns_ != 0) wait();
  }

 private:
  void wait();

  std::int64_t interval_ns_;
  std::atomic<std::int64_t> due_ns_{0};  // on the monotonic clock
};

}  // namespace stoker::sources
