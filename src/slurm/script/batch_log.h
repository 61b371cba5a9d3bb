// What Slurm's daemons write into the log of a batch script when they end it. It stays where the run is, long
// after the controller has forgotten the job, and without accounting. Thread-safe: no state.
#pragma once

#include <optional>
#include <string_view>

#include "slurm/queue/job_state.h"

namespace stoker::slurm {

/// Why a job was ended by Slurm, and when.
struct BatchEnding {
  JobState state = JobState::cancelled;  ///< pending: to be started again (scontrol requeue)
  std::optional<double> time;            ///< Unix seconds, read in the local time zone
};

/// The last such word about job `id` in `log` (its end is enough): "slurmstepd: error: *** JOB 7 ON n1
/// CANCELLED AT 2026-11-21T15:13:52 DUE TO TIME LIMIT ***". Nothing when there is none.
std::optional<BatchEnding> last_ending(std::string_view log, std::string_view id);

}  // namespace stoker::slurm
