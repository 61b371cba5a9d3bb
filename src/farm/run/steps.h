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

/// Runs `command` on each node of the allocation until all have ended; a node that fails does not end the
/// others. Sets kStepVariable for it. Passes SIGINT, SIGTERM, SIGHUP and SIGUSR1 on. Returns the signal that
/// it received, if any.
Result<std::optional<int>> run_on_all_nodes(const slurm::Allocation& allocation,
                                            const std::vector<std::string>& command,
                                            std::optional<double> end_time);

}  // namespace stoker::farm
