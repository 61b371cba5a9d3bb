#include "data/pack/pace.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace stoker::data {

Pace::Pace(double per_s) : interval_ns_(per_s > 0 ? static_cast<std::int64_t>(1e9 / per_s) : 0) {}

void Pace::wait() {
  using std::chrono::nanoseconds;
  using std::chrono::steady_clock;
  const std::int64_t now =
      std::chrono::duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
  std::int64_t due = due_ns_.load(std::memory_order_relaxed);
  std::int64_t mine = 0;
  do {
    mine = std::max(due, now);  // time that nobody used is not saved up
  } while (!due_ns_.compare_exchange_weak(due, mine + interval_ns_, std::memory_order_relaxed));
  if (mine > now) std::this_thread::sleep_for(nanoseconds(mine - now));
}

}  // namespace stoker::data
