// A worker on each node of an allocation, through one srun. Used by `stoker farm` in a batch script. Belongs
// to the main thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/allocation.h"
#include "slurm/queue/scheduler.h"
#include "stoker/status.h"

namespace stoker::farm {

/// Set for the worker of a node, which prints no result.
inline constexpr std::string_view kStepVariable = "STOKER_FARM_STEP";

/// When the allocation ends, Unix seconds: from the environment, or asked once. nullopt without a limit, or
/// if the scheduler does not answer.
std::optional<double> allocation_end(const slurm::Allocation& allocation, slurm::Scheduler& scheduler);

/// How the workers of an allocation ended.
struct StepEnd {
  std::optional<int> signal;  ///< received and passed on
  bool is_stopped = false;    ///< Slurm stopped them, and not this process
};
/// Runs `command` on each node of the allocation until all have ended; a node that fails does not end the
/// others. Sets kStepVariable for it. Passes SIGINT, SIGTERM, SIGHUP and SIGUSR1 on. When Slurm stops the
/// workers, as before a preemption, waits up to 5 minutes for its signal to this process.
Result<StepEnd> run_on_all_nodes(const slurm::Allocation& allocation, const std::vector<std::string>& command,
                                 std::optional<double> end_time);

}  // namespace stoker::farm
