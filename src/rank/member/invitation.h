// What `stoker run` gave a `stoker rank` on its way: where the run is and what this process is in it. A
// value.
#pragma once

#include <string>

#include "base/file.h"
#include "base/status.h"
#include "base/time.h"
#include "rank/plan.h"

namespace stoker::rank {

enum class Role {
  rank,           ///< starts the command
  node,           ///< starts torchrun, which starts the node's ranks; its place is the node's among nodes
  torchrun_rank,  ///< one of those: starts the command with what torchrun gave it
};

/// The place comes from STOKER_PLACE, under srun from Slurm, below torchrun from it.
struct Invitation {
  Role role = Role::rank;
  std::string world;
  std::string ranks_world;  ///< of a node: the invitation for its ranks
  Place place;
  std::string ranks_of_node;  ///< "2,2,1"
  int ranks_per_gpu = 1;
  Duration start_limit{0};
  int cpus = 0;
  Path attempt;
  bool is_under_srun = false;
  bool is_in_step = false;  ///< that of Slurm, itself or below torchrun
  std::string step;         ///< its number, or ""

  /// Whether others write to the same standard output, so that lines need their rank's number.
  bool shares_output() const { return is_under_srun || role == Role::torchrun_rank; }
};
/// Reads it from this process's environment. Invalid without a run to join, or without a place in it.
Result<Invitation> read_invitation();

/// Standard error of the run, where it is not this process's own: below torchrun that is torchrun's, and goes
/// to its log. Empty elsewhere.
Fd errors_of_the_run();

}  // namespace stoker::rank
