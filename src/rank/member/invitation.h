// What `stoker run` gave a `stoker rank` on its way: where the run is and which rank this is. A value.
#pragma once

#include <string>

#include "base/status.h"
#include "base/time.h"
#include "rank/plan.h"

namespace stoker::rank {

/// The place comes from STOKER_PLACE, under srun from Slurm.
struct Invitation {
  std::string world;
  Place place;
  Duration start_limit{0};
  int cpus = 0;
  Path attempt;
  bool is_under_srun = false;
};
/// Reads it from this process's environment. Invalid without a run to join, or without a place in it.
Result<Invitation> read_invitation();

}  // namespace stoker::rank
