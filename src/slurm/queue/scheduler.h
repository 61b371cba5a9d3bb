// The scheduler as the rest of Stoker sees it: submit, look, cancel. Slurm is asked through its own commands,
// with their text output, which every release has; each call is one program, at most one request to the
// controller, and has a deadline. Thread-compatible.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "base/time.h"
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
  /// Asks for the end of a job. NotFound when there is no such job.
  virtual Status cancel(std::string_view id, Deadline deadline) = 0;
  /// Ends one step of a job, with everything it left on its nodes.
  virtual Status cancel_step(std::string_view id, std::string_view step, Deadline deadline) = 0;
};

/// Slurm through sbatch, squeue, sacct, scontrol and scancel, found in PATH of `environment`.
class SlurmCommands final : public Scheduler {
 public:
  /// `environment` should be that of a user's shell; what a job around us left in it is taken out.
  explicit SlurmCommands(Environment environment);

  Result<std::string> submit(const Path& script, Deadline deadline) override;
  Result<JobList> jobs(Deadline deadline) override;
  Result<JobList> find(std::span<const std::string> ids, Deadline deadline) override;
  Status cancel(std::string_view id, Deadline deadline) override;
  Status cancel_step(std::string_view id, std::string_view step, Deadline deadline) override;

 private:
  Result<std::string> output_of(std::vector<std::string> argv, Deadline deadline) const;

  Environment environment_;
};

/// `base` without SLURM_... and SRUN_... of a job around us, and without SBATCH_... variables that would win
/// over the script's own lines; where the cluster is (SLURM_CONF and the like) stays.
Environment submission_environment(Environment base);

/// What a failed program of Slurm wants to say, from its standard error: invalid for what the user can
/// change, unavailable when the controller cannot be reached, not_found for an unknown job.
Status complaint(std::string_view program, const Captured& captured);

std::vector<std::string> sbatch_arguments(const Path& script);
std::vector<std::string> squeue_arguments();
std::vector<std::string> sacct_arguments(std::span<const std::string> ids);

}  // namespace stoker::slurm
