// Faults of the machine behind the errors that programs report: processes that were killed for their memory,
// and GPUs. Pure functions. Internal to this folder.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/suspect.h"

namespace stoker::diagnose {

/// Whether CUDA or one of its libraries reports such errors to the program.
bool is_device_error(const FailureRule& rule);

/// The most specific evidence of a process that was killed for its memory. `end`: the hits at the end of the
/// logs, as in the functions below.
std::optional<Suspect> memory_kill(const std::vector<Suspect>& end);

/// The kill or the fault of a GPU that explains the cause, or the cause itself.
Suspect fault_behind(const Suspect& cause, const std::vector<Suspect>& end);

/// The rank whose program reported the fault of a GPU, which the line about it does not name.
std::optional<int> rank_of_fault(const Suspect& cause, const std::vector<Suspect>& end);

}  // namespace stoker::diagnose
