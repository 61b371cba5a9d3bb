// Slurm jobs without a run folder: their state, from Slurm and from their log. Used by status, logs, wait and
// cancel for a job id. Thread-compatible.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/status/control.h"
#include "launch/status/life.h"
#include "observe/suspect_lines.h"
#include "slurm/queue/scheduler.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

/// A job, or one task of an array.
struct JobLife {
  slurm::JobInfo facts;
  Life life = Life::unknown;
  std::string note;                          ///< why it waits or ended
  std::optional<int> exit_code;              ///< of its script; 128 + signal if a signal killed it
  std::vector<observe::SuspectLine> doubts;  ///< for a completed job: log lines that suggest a failure
};

/// The state from Slurm's facts only. `now`: Unix seconds.
JobLife judge_job(const slurm::JobInfo& facts, double now);

/// The job, or all tasks of the array with that id. Also reads the log of a single job. At most three
/// queries. NotFound for an unknown job, Unavailable when Slurm does not answer.
Result<std::vector<JobLife>> query_job_lives(std::string_view id, slurm::Scheduler& scheduler,
                                             Deadline deadline);

/// Numbers of jobs by state: "9 000 done, 20 running, 2 failed".
std::string count_lives(const std::vector<JobLife>& jobs);
/// The combined state: running if one job is, else the worst one.
Life combined_life(const std::vector<JobLife>& jobs);

/// Waits until the job, or all tasks of the array, have ended. Calls `on_change`, and not the one in
/// `options`.
Result<std::vector<JobLife>> wait_for_job(std::string_view id, slurm::Scheduler& scheduler,
                                          const WaitOptions& options,
                                          const std::function<void(const std::vector<JobLife>&)>& on_change);

/// The combined exit code: 0 when all jobs are done, else that of the worst job.
int exit_code_of(const std::vector<JobLife>& jobs);

}  // namespace stoker::launch
