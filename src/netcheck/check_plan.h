// Selects the ranks of a `stoker hello` and their nodes: the ranks of a job, all nodes of the allocation,
// this machine, or nodes requested through srun. Pure.
#pragma once

#include <optional>

#include "job/job.h"
#include "netcheck/network_check.h"
#include "rank/plan.h"

namespace stoker::netcheck {

/// Values of the command line; empty: use the job or the environment.
struct CheckRequest {
  const job::Job* job = nullptr;  ///< null without a job
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> ranks_per_node;
};

/// The parts of NetworkCheckOptions that select the ranks. Invalid for invalid numbers, and for several nodes
/// without an allocation or srun.
Result<NetworkCheckOptions> plan_network_check(const CheckRequest& request, const rank::LaunchContext& here,
                                               bool has_srun);

/// Whether a program with that name is in PATH of `environment`.
bool is_in_path(std::string_view name, const Environment& environment);

}  // namespace stoker::netcheck
