// What Slurm's daemons write into the log of a batch script when they end it. It stays where the run is, long
// after the controller has forgotten the job, and without accounting. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/queue/job_state.h"

namespace stoker::slurm {

/// Why a job was ended by Slurm, and when.
struct BatchEnding {
  JobState state = JobState::cancelled;  ///< pending: to be started again (scontrol requeue)
  std::optional<double> time;            ///< Unix seconds, read in the local time zone; not of out_of_memory
  std::string figures;                   ///< of out_of_memory, where Slurm tells them: "268 MB of 67.1 MB"
};

/// The last such word about job `id` in `log` (its end is enough): "slurmstepd: error: *** JOB 7 ON n1
/// CANCELLED AT 2026-11-21T15:13:52 DUE TO TIME LIMIT ***", "slurmstepd: error: Detected 1 oom_kill event in
/// StepId=7.0". Lack of memory counts before a cancellation without a reason: Slurm ends so what took too
/// much. Nothing when there is none.
std::optional<BatchEnding> last_ending(std::string_view log, std::string_view id);
/// All such words, in the order of the log. An empty `id`, or that of an array's task, means any job.
std::vector<BatchEnding> endings(std::string_view log, std::string_view id);

}  // namespace stoker::slurm
