// Job states in the output of Slurm's commands since 20.11, and their meaning. An unknown state counts as not
// over, because new releases add states. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

namespace stoker::slurm {

enum class JobState {
  pending,     ///< pending, including requeued and held jobs (REQUEUED, REQUEUE_HOLD, ...)
  running,     ///< has its nodes, including while they boot
  suspended,   ///< has its nodes but is suspended
  completing,  ///< has ended; Slurm is cleaning up
  completed,   ///< the script ended with exit code 0
  failed,      ///< the script ended with another exit code
  cancelled,
  timeout,
  out_of_memory,
  node_failed,  ///< a node failed (NODE_FAIL) or did not boot (BOOT_FAIL)
  preempted,
  deadline,  ///< --deadline passed
  unknown,   ///< an unknown state: not over until proven otherwise
};
/// "pending", "out of memory", ...
std::string_view to_text(JobState state);

/// Parses "RUNNING", "CANCELLED by 1000", "OUT_OF_ME+", "PD"; ignores case.
JobState parse_job_state(std::string_view text);

/// The signal of a job whose script Slurm could not start ("0:53"): Slurm's own code, no signal of a program.
constexpr int kLaunchFailure = 53;

/// The job has ended and will not run again with this id.
bool is_over(JobState state);

/// Plain description of a pending reason: "other jobs have a higher priority" for Priority; "" for an unknown
/// reason, which should then be shown verbatim.
std::string_view reason_text(std::string_view reason);

}  // namespace stoker::slurm
