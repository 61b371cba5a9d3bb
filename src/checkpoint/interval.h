// Chooses the checkpoint interval: expected loss on a failure against the cost of saving. Used by the trainer
// for `checkpoint.every: auto`. Thread-safe: pure functions.
#pragma once

#include <optional>
#include <string>

#include "stoker/time.h"

namespace stoker::checkpoint {

/// Inputs of the choice.
struct CheckpointCosts {
  double stall_s = 0;        ///< time that a save blocks the training
  double write_s = 0;        ///< from then until it is committed
  bool is_measured = false;  ///< false: both are estimates from the byte count
  /// Mean time between failures of the whole job.
  Duration mtbf{0};
  /// Time until the job must end; nullopt without a limit.
  std::optional<Duration> left;
};

struct Interval {
  Duration every{0};
  std::string reason;  ///< "stall 0.05 s, write time 0.9 s, one failure per 1 d: Daly's optimum 1 min 33 s"
};

/// Minimum time between two saves, whatever their cost.
inline constexpr Duration kMinInterval = std::chrono::seconds(10);

/// Daly's interval, but at least kMinInterval and the duration of a save, and short enough that the next save
/// ends before the deadline.
Interval choose_interval(const CheckpointCosts& facts);

/// Estimate before the first save, for this many bytes on this rank: a copy at 5 GB/s, a disk at 0.5 GB/s.
CheckpointCosts estimate_costs(std::uint64_t bytes);

/// J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps" (2006): for the
/// cost of a save and the mean time between failures, both in seconds. Close to Young's first-order interval
/// for small costs; the mean time itself if a save costs half of it or more.
double daly_interval(double cost_s, double mtbf_s);

}  // namespace stoker::checkpoint
