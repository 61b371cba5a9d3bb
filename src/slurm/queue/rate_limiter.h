// Limits how often all processes of a user on this machine query Slurm's controller. The controller serves
// all users with the same threads, and sites ban users who poll in loops. A locked file contains the token
// bucket. If the file is unusable, there is no limit. Thread-compatible.
#pragma once

#include <string>
#include <string_view>

#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::slurm {

/// Variable with the number of queries per second; 0 for no limit.
inline constexpr std::string_view kCallsPerSecond = "STOKER_SLURM_CALLS_PER_S";

/// A token bucket with the burst of Slurm's own limit per user (rl_bucket_size, rl_refill_rate since 23.02).
class CallRateLimiter {
 public:
  static constexpr double kBurst = 30;
  static constexpr double kDefaultPerSecond = 2;

  /// An empty file or a rate of 0: no limit.
  CallRateLimiter(Path file, double per_second) : file_(std::move(file)), per_second_(per_second) {}
  /// The limiter of this user for the cluster of `slurm_conf`, in `runtime_folder` (XDG_RUNTIME_DIR) or in
  /// /tmp. `rate`: the variable's value.
  static CallRateLimiter for_user(std::string_view runtime_folder, std::string_view slurm_conf,
                                  std::string_view rate);

  /// Takes one token, and waits for it if necessary. Timeout if none is available before `deadline`.
  Status acquire(Deadline deadline);
  /// Tokens left after the last acquire(); kBurst before, or without a limit.
  double left() const { return left_; }
  double per_second() const { return file_.empty() ? 0 : per_second_; }

 private:
  Path file_;
  double per_second_ = kDefaultPerSecond;
  double left_ = kBurst;
};

}  // namespace stoker::slurm
