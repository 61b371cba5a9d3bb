// Counters of running collectives. Thread-safe: collectives end on gloo's threads.
#pragma once

#include <cstdint>

#include "base/thread.h"
#include "stoker/rendezvous_options.h"

namespace stoker::train {

class TrafficMeter {
 public:
  /// A collective of `bytes` starts on this rank.
  void begin(std::uint64_t bytes);
  /// A collective has ended, successfully or not.
  void end();
  Traffic traffic() const;

 private:
  mutable Mutex mutex_;
  Traffic traffic_ STOKER_GUARDED_BY(mutex_);
  int under_way_ STOKER_GUARDED_BY(mutex_) = 0;
  double busy_since_s_ STOKER_GUARDED_BY(mutex_) = 0;
};

/// Seconds on the monotonic clock, as in Traffic::last_issued_s.
double monotonic_s();

}  // namespace stoker::train
