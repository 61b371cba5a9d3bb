#include "sources/rate_limiter.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace stoker::sources {

RateLimiter::RateLimiter(double per_s)
    : interval_ns_(per_s > 0 ? static_cast<std::int64_t>(1e9 / per_s) : 0) {}

void RateLimiter::wait() {
  using std::chrono::nanoseconds;
  using std::chrono::steady_clock;
  const std::int64_t now =
      std::chrono::duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
  std::int64_t due = due_ns_.load(std::memory_order_relaxed);
  std::int64_t slot = 0;
  do {
    slot = std::max(due, now);  // unused time does not accumulate
  } while (!due_ns_.compare_exchange_weak(due, slot + interval_ns_, std::memory_order_relaxed));
  if (slot > now) std::this_thread::sleep_for(nanoseconds(slot - now));
}

}  // namespace stoker::sources
