// Checks that all ranks have the same model, and reports unused parameters by name and rank. Used by
// DataParallel. One thread of one rank.
#pragma once

#include <string>
#include <vector>

#include "stoker/model_state.h"
#include "stoker/process_group.h"
#include "stoker/status.h"

namespace stoker::train {

/// Compares names, types and shapes of all parameters and buffers with rank 0's. Collective; the same result
/// on all ranks: Invalid "parameter 3 is 'b' of Float [2] on rank 0, but 'b' of Float [3] on rank 1".
Status compare_models(ProcessGroup& group, const NamedTensors& parameters, const NamedTensors& buffers);

/// The names of unused parameters in an error text of c10d::Reducer; empty for other texts.
std::vector<std::string> names_without_gradient(std::string_view text, const NamedTensors& parameters);

/// The error for parameters without gradient on this rank (`missing`, which may be empty) or on peers:
/// Invalid "no gradient for 'b' on rank 1, ...". Ok if no rank lacks a gradient. Works after the group
/// failed; waits briefly for the peers.
Status missing_gradient_error(ProcessGroup& group, const std::vector<std::string>& missing);

}  // namespace stoker::train
