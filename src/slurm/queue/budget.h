// How often one user's processes on this machine may ask Slurm's controller together: the controller answers
// everybody with the same threads, and sites cut off users who ask in loops. A small file under a lock holds
// the bucket; where it cannot be kept nothing is held back. Thread-compatible.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace stoker::slurm {

/// The variable that sets questions per second in place of the default; 0 for no limit.
inline constexpr std::string_view kCallsPerSecond = "STOKER_SLURM_CALLS_PER_S";

/// As many at once as Slurm's own limit per user (rl_bucket_size, rl_refill_rate from 23.02 on) lets through.
class CallBudget {
 public:
  static constexpr double kBurst = 30;
  static constexpr double kDefaultPerSecond = 2;

  /// An empty file or a rate of 0: no limit.
  CallBudget(Path file, double per_second) : file_(std::move(file)), per_second_(per_second) {}
  /// That of this user for the cluster of `slurm_conf`, in `runtime_folder` (XDG_RUNTIME_DIR) or in /tmp.
  /// `rate`: the variable's value.
  static CallBudget of_user(std::string_view runtime_folder, std::string_view slurm_conf,
                            std::string_view rate);

  /// Takes one call, waiting for it if need be. Timeout when none comes free before `deadline`.
  Status take(Deadline deadline);
  /// What was left after the last `take`; kBurst before, or without a limit.
  double left() const { return left_; }
  double per_second() const { return file_.empty() ? 0 : per_second_; }

 private:
  Path file_;
  double per_second_ = kDefaultPerSecond;
  double left_ = kBurst;
};

}  // namespace stoker::slurm
