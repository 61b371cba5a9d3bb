// How often a training should save: what a failure would lose against what saving costs. Used by the trainer
// for `checkpoint.every: auto`. Thread-safe: pure functions.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"

namespace stoker::checkpoint {

/// What the choice rests on.
struct IntervalFacts {
  double stall_s = 0;        ///< how long a save keeps the training waiting
  double write_s = 0;        ///< from there until it is committed
  bool is_measured = false;  ///< else the two are a guess from the bytes
  /// Mean time between failures of the whole job.
  Duration mtbf{0};
  /// Until the job must have ended; nothing when nobody said.
  std::optional<Duration> left;
};

struct Interval {
  Duration every{0};
  std::string reason;  ///< "stall 0.05 s, written in 0.9 s, a failure every 1 d: Daly's optimum 1 min 33 s"
};

/// The least time between two saves, whatever saving costs.
inline constexpr Duration kLeastInterval = std::chrono::seconds(10);

/// Daly's interval for what saving costs, but not less than kLeastInterval or the time that a save takes
/// until it is safe, and not so long that the next save would end after the deadline.
Interval choose_interval(const IntervalFacts& facts);

/// A guess before anything was saved, for that many bytes on this rank: a copy of 5 GB/s, a disk of 0.5 GB/s.
IntervalFacts guess_costs(std::uint64_t bytes);

/// J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps" (2006): for
/// what a save costs and the mean time between failures, both in seconds. Of Young's first order where the
/// cost is small; the mean time itself where a save costs half of it or more.
double daly_interval(double cost_s, double mtbf_s);

}  // namespace stoker::checkpoint
