#include "rank/member/watch.h"

namespace stoker::rank {

void Watch::add_sample(const Sample& sample) {
  // A runtime that waits for peers wakes up regularly: one percent of a core is no progress.
  constexpr double kIdleShare = 0.01;
  const double seconds = alive_ ? Seconds(sample.time - last_).count() : 0;
  const bool has_stepped = sample.beacon && sample.beacon != beacon_;
  const bool has_worked = sample.cpu_s - cpu_s_ > kIdleShare * seconds + 0.005;
  last_ = sample.time;
  // The run folder with the beacon was removed or moved: the position is unknown, and a rank that waits for
  // its GPU uses no CPU time.
  const bool is_beacon_lost = beacon_ && !sample.beacon;
  if (!alive_ || has_stepped || has_worked || is_beacon_lost) alive_ = sample.time;
  if (sample.beacon) beacon_ = sample.beacon;
  cpu_s_ = sample.cpu_s;
  if (!sample.is_stopped) stopped_since_.reset();
  if (sample.is_stopped && !stopped_since_) stopped_since_ = sample.time;
}

}  // namespace stoker::rank
