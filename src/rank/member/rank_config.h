// The configuration that a `stoker rank` receives from `stoker run`: the run's address and the role and
// placement of this process. A value.
#pragma once

#include <string>

#include "base/file.h"
#include "rank/plan.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::rank {

enum class Role {
  rank,           ///< starts the command
  node,           ///< starts torchrun, which starts the node's ranks; its placement counts nodes
  torchrun_rank,  ///< one of them: starts the command with torchrun's variables
};

/// The placement comes from STOKER_PLACE, under srun from Slurm, below torchrun from torchrun.
struct RankConfig {
  Role role = Role::rank;
  std::string world;
  std::string ranks_world;  ///< for a node: the address for its ranks
  RankPlacement place;
  std::string ranks_of_node;  ///< "2,2,1"
  int gpus_per_rank = 0;
  int ranks_per_gpu = 1;
  Duration start_limit{0};
  int cpus = 0;
  Path attempt;
  std::string metrics_from;  ///< kMetricsVariable; "none" for a node
  bool is_under_srun = false;
  bool is_in_step = false;  ///< a Slurm step, directly or below torchrun
  std::string step;         ///< its number, or ""

  /// Whether peers write to the same standard output, so that lines need a rank prefix.
  bool shares_output() const { return is_under_srun || role == Role::torchrun_rank; }
};
/// Reads it from this process's environment. Invalid without a run to join, or without a placement.
Result<RankConfig> read_rank_config();

/// The run's standard error, if it differs from this process's: below torchrun, standard error goes to
/// torchrun's log. Empty elsewhere.
Fd open_run_stderr();

}  // namespace stoker::rank
