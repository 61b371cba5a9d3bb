// Starts the lab's Slurm daemons. Used by up and by faults.
#pragma once

#include <string>
#include <vector>

#include "lab/lab.h"
#include "stoker/time.h"

namespace stoker::lab {

/// Starts this node's slurmd (which must not be running) and sets `node.slurmd`; the caller saves. Does not
/// wait until the node responds.
Status start_slurmd(const Lab& lab, LabNode& node);
/// Starts slurmctld (which must not be running) from its saved state; sets `lab.controller`.
Status start_controller(Lab& lab);
/// Waits until slurmctld answers, or Timeout with the last lines of its log.
Status wait_for_controller(const Lab& lab, Deadline deadline);

}  // namespace stoker::lab
