// Spreads requests to a metadata server over time. Thread-safe: all threads share one pace.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker::data {

class Pace {
 public:
  /// At most `per_s` a second; 0: no limit.
  explicit Pace(double per_s = 0);
  bool is_limited() const { return interval_ns_ != 0; }
  /// Blocks until the next request is due: at most (threads / per_s) seconds.
  void take() {
    if (interval_ns_ != 0) wait();
  }

 private:
  void wait();

  std::int64_t interval_ns_;
  std::atomic<std::int64_t> due_ns_{0};  // on the monotonic clock
};

}  // namespace stoker::data
