// Counts what collectives cost while they run. Thread-safe: collectives end on gloo's threads.
#pragma once

#include <cstdint>

#include "base/thread.h"
#include "torch/rendezvous.h"

namespace stoker::torch {

class TrafficMeter {
 public:
  /// A collective with `bytes` of this rank's data starts.
  void begin(std::uint64_t bytes);
  /// One that began has ended, well or not.
  void end();
  Traffic traffic() const;

 private:
  mutable Mutex mutex_;
  Traffic traffic_ GUARDED_BY(mutex_);
  int under_way_ GUARDED_BY(mutex_) = 0;
  double busy_since_s_ GUARDED_BY(mutex_) = 0;
};

/// Seconds on the monotonic clock, as in Traffic::last_issued_s.
double monotonic_s();

}  // namespace stoker::torch
