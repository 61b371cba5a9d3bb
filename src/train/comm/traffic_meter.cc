#include "train/comm/traffic_meter.h"

#include "stoker/time.h"

namespace stoker::train {

double monotonic_s() { return Seconds(RealClock().mono().time_since_epoch()).count(); }

void TrafficMeter::begin(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  traffic_.last_issued_s = monotonic_s();
  traffic_.calls += 1;
  traffic_.bytes += bytes;
  if (under_way_++ == 0) busy_since_s_ = traffic_.last_issued_s;
}

void TrafficMeter::end() {
  const MutexLock lock(mutex_);
  if (--under_way_ == 0) traffic_.in_flight_s += monotonic_s() - busy_since_s_;
}

Traffic TrafficMeter::traffic() const {
  const MutexLock lock(mutex_);
  return traffic_;
}

}  // namespace stoker::train
