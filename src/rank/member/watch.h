// Detects ranks that are stopped by a signal or silent (no step, no CPU time). Works on samples from the
// caller, so it needs no clock and no /proc. Used by `stoker rank`; one object per rank.
#pragma once

#include <cstdint>
#include <optional>

#include "stoker/time.h"

namespace stoker::rank {

/// A sample of a rank's processes.
struct Sample {
  MonoTime time;
  std::optional<std::uint64_t> beacon;  ///< the beacon's counter, if the beacon is readable
  double cpu_s = 0;                     ///< of all its processes
  bool is_stopped = false;              ///< one of them is in state T
};

/// Turns samples into durations.
class Watch {
 public:
  void add_sample(const Sample& sample);
  /// How long a process of it has been stopped; zero when none is.
  Duration stopped_for() const { return stopped_since_ ? last_ - *stopped_since_ : Duration::zero(); }
  /// How long there was no progress: no step and hardly any CPU time. Zero if the beacon has disappeared.
  Duration silent_for() const { return alive_ ? last_ - *alive_ : Duration::zero(); }
  bool has_beacon() const { return beacon_.has_value(); }

 private:
  MonoTime last_;
  std::optional<MonoTime> stopped_since_;
  std::optional<MonoTime> alive_;
  std::optional<std::uint64_t> beacon_;
  double cpu_s_ = 0;
};

}  // namespace stoker::rank
