// Slurm's environment variables of a process: its allocation, and the position of its task in the step.
// Strict: a variable with an unexpected value is an error. Thread-safe: no state.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"
#include "stoker/strong.h"

namespace stoker::slurm {

/// Returns the value of an environment variable, or nullopt.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;
/// The environment of this process.
Lookup process_environment();

/// The job this process runs in.
struct Allocation {
  std::string job_id;               ///< "812345"; "812301_17" for an array task
  std::vector<std::string> nodes;   ///< in Slurm's order
  std::vector<int> tasks_per_node;  ///< as requested at submission; empty if not requested
  int cpus_per_task = 0;            ///< 0 if not requested
  int restart_count = 0;            ///< number of requeues
  std::optional<double> end_time;   ///< Unix seconds; Slurm 23.02 and later
  bool is_part = false;             ///< `nodes` is a part of the job's nodes, shared with other runs
};

/// The nodes of a run that shares an allocation with other runs: "n3,n4".
inline constexpr std::string_view kStepNodesVariable = "STOKER_STEP_NODES";

/// The allocation, or nullopt outside one (SLURM_JOB_ID not set). Reads SLURM_JOB_ID, SLURM_JOB_NODELIST,
/// SLURM_TASKS_PER_NODE, SLURM_CPUS_PER_TASK, SLURM_RESTART_COUNT, SLURM_JOB_END_TIME, SLURM_ARRAY_*. With
/// STOKER_STEP_NODES, only these nodes, and nothing that was requested for the whole job.
Result<std::optional<Allocation>> current_allocation(const Lookup& env);

/// One task of a step started by srun.
struct Task {
  Rank rank;
  WorldSize world_size;
  int local_rank = 0;
  int local_world_size = 1;
  int node = 0;
};

/// This task, or nullopt outside a step, as in a batch script (neither SLURM_STEP_ID nor SLURM_STEP_NUM_TASKS
/// set). Reads SLURM_PROCID, SLURM_LOCALID, SLURM_NODEID, SLURM_STEP_NUM_TASKS and SLURM_STEP_TASKS_PER_NODE;
/// falls back to SLURM_NTASKS.
Result<std::optional<Task>> current_task(const Lookup& env);

/// A step to start with `srun`.
struct StepRequest {
  WorldSize tasks;
  int nodes = 1;
  int tasks_per_node = 1;  ///< 0: by SLURM_HOSTFILE, which has one line per task with its node
  int cpus_per_task = 0;   ///< 0: not requested
  std::vector<std::string> command;
  bool uses_whole_node = false;  ///< each task may use all resources of the job on its node
  std::string node_list = {};    ///< the step gets these nodes and only the resources that it asks for
  bool overlaps = false;         ///< shares resources with other steps (--overlap); inherits srun's input
};

/// The srun arguments of a step. Every count is explicit, because the values that srun inherits from the job
/// changed between 22.05 and 23.11. The caller kills the step, because it knows the cause.
std::vector<std::string> srun_arguments(const StepRequest& request);
/// Variables that a nested srun must not inherit, because they bind its tasks to the cores of the outer step.
std::vector<std::string> variables_to_drop();
/// CPUs of the job or step on this node: SLURM_CPUS_ON_NODE inside a job, else nullopt. The only limit on
/// clusters that do not confine jobs by cgroups.
std::optional<int> cpus_on_node(const Lookup& env);

}  // namespace stoker::slurm
