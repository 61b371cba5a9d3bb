// What Slurm tells a process in its environment: the allocation it is in, and the place of a task in its
// step. Strict: a variable that is there but is not what Slurm writes is an error. Thread-safe: no state.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/strong.h"

namespace stoker::slurm {

/// Looks a variable of the environment up: nothing when it is not set.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;
/// The environment of this process.
Lookup process_environment();

/// The job this process runs in.
struct Allocation {
  std::string job_id;               ///< "812345"; of an array task "812301_17"
  std::vector<std::string> nodes;   ///< in Slurm's order
  std::vector<int> tasks_per_node;  ///< as asked for at submission; empty when it was not
  int cpus_per_task = 0;            ///< 0 when it was not asked for
  int restart_count = 0;            ///< how often Slurm has requeued the job
  std::optional<double> end_time;   ///< Unix seconds; Slurm 23.02 and later
};

/// The allocation, or nothing outside one (SLURM_JOB_ID not set). Reads SLURM_JOB_ID, SLURM_JOB_NODELIST,
/// SLURM_TASKS_PER_NODE, SLURM_CPUS_PER_TASK, SLURM_RESTART_COUNT, SLURM_JOB_END_TIME, SLURM_ARRAY_*.
Result<std::optional<Allocation>> current_allocation(const Lookup& env);

/// One task of a step started by srun.
struct Task {
  Rank rank;
  WorldSize world_size;
  int local_rank = 0;
  int local_world_size = 1;
  int node = 0;
};

/// This task's place, or nothing outside a step: in a batch script, say (neither SLURM_STEP_ID nor
/// SLURM_STEP_NUM_TASKS set). Reads SLURM_PROCID, SLURM_LOCALID, SLURM_NODEID, SLURM_STEP_NUM_TASKS and
/// SLURM_STEP_TASKS_PER_NODE; falls back to SLURM_NTASKS.
Result<std::optional<Task>> current_task(const Lookup& env);

/// What `srun` is asked to start.
struct StepRequest {
  WorldSize tasks;
  int nodes = 1;
  int tasks_per_node = 1;  ///< 0: as SLURM_HOSTFILE has them, a line with the node's name for each task
  int cpus_per_task = 0;   ///< 0: not asked for
  std::vector<std::string> command;
  bool is_whole = false;   ///< each task may use all that the job has on its node
  bool is_beside = false;  ///< beside other steps, from which it takes nothing; its input is srun's
};

/// The arguments that start the step: every count is given explicitly, since what srun takes over from the
/// job changed between 22.05 and 23.11; killing is left to the caller, who knows the cause.
std::vector<std::string> srun_arguments(const StepRequest& request);
/// Variables that a nested srun must not inherit, because they bind its tasks to the cores of the outer step.
std::vector<std::string> variables_to_drop();
/// CPUs of the job, or within a step of that step, on this node: SLURM_CPUS_ON_NODE inside a job, else
/// nothing. Where no cgroup keeps a job to its share, this alone says how large it is.
std::optional<int> cpus_on_node(const Lookup& env);

}  // namespace stoker::slurm
