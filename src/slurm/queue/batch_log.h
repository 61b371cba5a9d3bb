// Messages of Slurm's daemons in the log of a batch script about its termination. They remain readable after
// the controller has forgotten the job, and without accounting. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/queue/job_state.h"

namespace stoker::slurm {

/// Why and when Slurm terminated a job.
struct JobTermination {
  JobState state = JobState::cancelled;  ///< pending: requeued (scontrol requeue)
  std::optional<double> time;  ///< Unix seconds, parsed in the local time zone; not for out_of_memory
  std::string figures;         ///< for out_of_memory, if Slurm reports them: "268 MB of 67.1 MB"
};

/// The last termination message about job `id` at the end of `log`: "slurmstepd: error: *** JOB 7 ON n1
/// CANCELLED AT 2026-11-21T15:13:52 DUE TO TIME LIMIT ***", "slurmstepd: error: Detected 1 oom_kill event in
/// StepId=7.0". Out of memory takes precedence over a cancellation without a reason, which is its
/// consequence. Nullopt without such a message.
std::optional<JobTermination> last_termination(std::string_view log, std::string_view id);
/// All termination messages in log order. An empty `id` or an array task's id matches any job.
std::vector<JobTermination> parse_terminations(std::string_view log, std::string_view id);

}  // namespace stoker::slurm
