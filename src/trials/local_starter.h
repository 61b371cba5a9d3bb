// Trials as processes here: each is a `stoker run` that shares this machine, or in an allocation a step that
// Slurm places on its nodes. The runs continue when this process is killed. Belongs to one thread.
#pragma once

#include <memory>

#include "stoker/status.h"
#include "trials/starter.h"

namespace stoker::trials {

/// Invalid when Slurm's variables of this process are damaged. REQUIRES: the job is no batch script.
Result<std::unique_ptr<TrialStarter>> make_local_starter(TrialJob job);

}  // namespace stoker::trials
