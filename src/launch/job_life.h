// A job of Slurm that no run folder of ours stands behind: how it is, or how it ended, from what Slurm tells
// and from its log. Used by status, logs, wait and cancel when they are given a job's id. Thread-compatible.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "launch/control.h"
#include "launch/life.h"
#include "observe/doubts.h"
#include "slurm/queue/scheduler.h"

namespace stoker::launch {

/// A job, or one task of an array.
struct JobLife {
  slurm::JobFacts facts;
  Life life = Life::unknown;
  std::string note;                    ///< why it waits, or why it ended
  std::optional<int> exit_code;        ///< of its script, 128 + the signal where one killed it
  std::vector<observe::Doubt> doubts;  ///< of one that is done: lines of its log that tell otherwise
};

/// The verdict from what Slurm tells alone. `now`: Unix seconds.
JobLife judge_job(const slurm::JobFacts& facts, double now);

/// The job, or all tasks of the array of that id; of a single job its log is looked at too. At most three
/// questions. NotFound when nobody knows it (any more), Unavailable when Slurm does not answer.
Result<std::vector<JobLife>> look_at_job(std::string_view id, slurm::Scheduler& scheduler, Deadline deadline);

/// How many are how: "9 000 done, 20 running, 2 failed".
std::string count_lives(const std::vector<JobLife>& jobs);
/// The life of all together: running while one is, else the worst ending.
Life life_of_all(const std::vector<JobLife>& jobs);

/// Waits until the job, or all tasks of the array, are over; `on_change` of `options` is not called, but
/// this.
Result<std::vector<JobLife>> wait_for_job(std::string_view id, slurm::Scheduler& scheduler,
                                          const WaitOptions& options,
                                          const std::function<void(const std::vector<JobLife>&)>& on_change);

/// The exit code of all together: 0 when all are done, else that of the worst.
int exit_code_of(const std::vector<JobLife>& jobs);

}  // namespace stoker::launch
