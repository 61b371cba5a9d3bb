// The scheduler as the rest of Stoker sees it: submit, look, cancel. Slurm is asked through its own commands,
// with their text output, which every release has; each call is one program, at most one request to the
// controller, and has a deadline. What is asked again and again is asked within a budget (budget.h).
// Thread-compatible.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "base/time.h"
#include "slurm/queue/budget.h"
#include "slurm/queue/cluster.h"
#include "slurm/queue/job_table.h"

namespace stoker::slurm {

/// Where jobs are queued. Unavailable and Timeout say that it could not be asked, which tells nothing about
/// the jobs.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// Queues the script and gives the job's id. Invalid when the scheduler refuses it. After Timeout the job
  /// may be in the queue all the same: look for its comment.
  virtual Result<std::string> submit(const Path& script, Deadline deadline) = 0;
  /// All jobs of this user that the controller knows, those that ended in the last minutes too.
  virtual Result<JobList> jobs(Deadline deadline) = 0;
  /// These jobs as accounting knows them, long after their end; without accounting those of them that the
  /// controller still knows. Jobs that nobody knows are missing in the list.
  virtual Result<JobList> find(std::span<const std::string> ids, Deadline deadline) = 0;
  /// All that can be learnt of one job of anybody: where its log is, which of its steps failed. Several jobs
  /// for the id of an array. NotFound when nobody knows it (any more).
  virtual Result<JobList> describe(std::string_view id, Deadline deadline) = 0;
  /// Asks for the end of a job. NotFound when there is no such job.
  virtual Status cancel(std::string_view id, Deadline deadline) = 0;
  /// Withdraws what of an array has not begun; what runs goes on.
  virtual Status cancel_waiting(std::string_view id, Deadline deadline) = 0;
  /// Ends a job and starts it again, later, under the same id; one that waits to be is left as it is. Invalid
  /// where the scheduler does not allow it.
  virtual Status requeue(std::string_view id, Deadline deadline) = 0;
  /// Whether a running job is being ended to make room for another one.
  virtual Result<bool> is_being_preempted(std::string_view id, Deadline deadline) = 0;
  /// How many tasks an array may have at most.
  virtual Result<std::int64_t> largest_array(Deadline deadline) = 0;
  /// Ends one step of a job, with everything it left on its nodes.
  virtual Status cancel_step(std::string_view id, std::string_view step, Deadline deadline) = 0;
};

/// What wins where a shell's SBATCH_ variables and the lines of a script both say something.
enum class Wins {
  script,  ///< a script that Stoker wrote
  shell,   ///< as with sbatch itself: for scripts of people's own
};
/// Whether accounting is asked for jobs alone, or for their steps too, which are several rows each.
enum class Detail { jobs, steps };

/// Slurm through sbatch, squeue, sacct, scontrol and scancel, found in PATH of `environment`.
class SlurmCommands final : public Scheduler {
 public:
  /// `environment` should be that of a user's shell; what a job around us left in it is taken out.
  explicit SlurmCommands(Environment environment, Wins wins = Wins::script);

  Result<std::string> submit(const Path& script, Deadline deadline) override;
  Result<JobList> jobs(Deadline deadline) override;
  Result<JobList> find(std::span<const std::string> ids, Deadline deadline) override;
  Result<JobList> describe(std::string_view id, Deadline deadline) override;
  Status cancel(std::string_view id, Deadline deadline) override;
  Status cancel_waiting(std::string_view id, Deadline deadline) override;
  Status requeue(std::string_view id, Deadline deadline) override;
  Result<bool> is_being_preempted(std::string_view id, Deadline deadline) override;
  Result<std::int64_t> largest_array(Deadline deadline) override;
  Status cancel_step(std::string_view id, std::string_view step, Deadline deadline) override;
  /// What `sbatch --test-only` says of a script that is not queued: "to start at 2026-11-21T20:00:00 using 2
  /// processors on nodes n1 in partition cpu". Errors as of submit.
  Result<std::string> test(const Path& script, Deadline deadline);
  /// What the cluster tells of itself, by three questions at most. Without accounting it has no accounts.
  Result<ClusterFacts> cluster(Deadline deadline);

  /// What was asked so far.
  struct Calls {
    int count = 0;      ///< programs started, each at most one request to the controller
    Duration spent{0};  ///< in them
  };
  const Calls& calls() const { return calls_; }
  const CallBudget& budget() const { return budget_; }

 private:
  Result<Captured> answer_of(std::vector<std::string> argv, Deadline deadline);
  Result<std::string> ask(std::vector<std::string> argv, Deadline deadline);
  Result<std::string> output_of(std::vector<std::string> argv, Deadline deadline);
  Result<JobList> known_to_accounting(std::span<const std::string> ids, Detail detail, Deadline deadline);

  Environment environment_;
  CallBudget budget_;
  Calls calls_;
};

/// `base` without SLURM_... and SRUN_... of a job around us, and without SBATCH_... variables that would win
/// over the script's own lines, unless the shell is to win; where the cluster is (SLURM_CONF and the like)
/// stays.
Environment submission_environment(Environment base, Wins wins = Wins::script);

/// The sentence about the job in what `sbatch --test-only` printed: "Job 813 to start at ..." without its
/// number.
Result<std::string> parse_test(std::string_view text);

/// What a failed program of Slurm wants to say, from its standard error: invalid for what the user can
/// change, unavailable when the controller cannot be reached, not_found for an unknown job.
Status complaint(std::string_view program, const Captured& captured);

/// Whether `scontrol show job` tells a PreemptTime.
bool tells_preemption(std::string_view record);

/// The largest array that `scontrol show config` allows: MaxArraySize is a bound on indices, which begin with
/// 1 here, and max_array_tasks one on tasks. Corrupt when there is no MaxArraySize.
Result<std::int64_t> parse_largest_array(std::string_view config);

std::vector<std::string> sbatch_arguments(const Path& script);
/// Of all jobs of this user.
std::vector<std::string> squeue_arguments();
/// Of these jobs, whosever they are; of an array a row for each task.
std::vector<std::string> squeue_arguments(std::span<const std::string> ids);
std::vector<std::string> sacct_arguments(std::span<const std::string> ids, Detail detail);

}  // namespace stoker::slurm
