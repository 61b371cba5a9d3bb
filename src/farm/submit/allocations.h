// Few allocations for many tasks: how many, their batch script, and their submission. Used by `stoker farm`
// outside of an allocation. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "farm/ledger/farm_state.h"
#include "slurm/queue/scheduler.h"
#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::farm {

/// One allocation, as requested.
struct AllocationRequest {
  Duration time{0};
  int nodes = 1;
  int cpus_per_node = 0;  ///< 0: not requested; the node is then exclusive
  int gpus_per_node = 0;
  std::optional<ByteCount> memory_per_node;
  std::string account;
  std::string partition;
  std::string qos;
  std::string reservation;
  std::vector<std::string> extra;    ///< further sbatch options
  std::uint64_t count = 0;           ///< number of allocations; 0: by the run times of the tasks
  std::vector<std::string> command;  ///< `stoker farm ...` without the options of the allocation
  Duration signal_before{0};         ///< before the end; the tasks are stopped then
};

/// What the tasks that are left need.
struct AllocationPlan {
  std::uint64_t tasks = 0;          ///< left to run
  std::optional<double> seconds;    ///< of one task: given, or measured; on average
  std::uint64_t tasks_at_once = 0;  ///< in one allocation; 0 if the nodes are not known
  std::uint64_t allocations = 1;
  std::uint64_t too_long = 0;  ///< tasks that need more time than an allocation has
};
/// Invalid if no task fits on a node, or if the number of cores of a node is missing.
Result<AllocationPlan> plan_allocations(const FarmState& state, const AllocationRequest& request,
                                        bool retries_failed);

/// The batch script of `count` allocations. Invalid if sbatch cannot read a value.
Result<std::string> allocation_script(const FarmState& state, const AllocationRequest& request,
                                      std::uint64_t count);
/// Writes the script into the folder of the farm and submits it, as an array if `count` > 1. One call of the
/// scheduler, or several where its arrays are smaller. Returns the ids of the jobs.
Result<std::vector<std::string>> submit_allocations(const FarmState& state, const AllocationRequest& request,
                                                    std::uint64_t count, slurm::Scheduler& scheduler);

/// Jobs of this farm that are pending or run.
Result<std::vector<slurm::JobInfo>> queued_allocations(const FarmState& state, slurm::Scheduler& scheduler);

}  // namespace stoker::farm
