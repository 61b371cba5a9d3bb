// Trials as processes here: each is a `stoker run` that shares this machine, or in an allocation a step that
// Slurm places on its nodes. A trial of several nodes gets a group of nodes, whose ranks it starts as a step.
// The runs continue when this process is killed. Belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "job/job.h"
#include "stoker/status.h"
#include "trials/starter.h"

namespace stoker::trials {

/// How many trials of several nodes run in this allocation at a time, or nullopt for trials of one node and
/// outside an allocation. Invalid if none fits.
Result<std::optional<std::uint32_t>> fitting_trials(const job::Resources& resources);

/// Invalid when Slurm's variables of this process are damaged. REQUIRES: the job is no batch script.
Result<std::unique_ptr<TrialStarter>> make_local_starter(TrialJob job);

}  // namespace stoker::trials
