// Whether all ranks have the same model, and which parameters took no part in a step: told by name and rank
// before the step dies of it. Used by DataParallel. One thread of one rank.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "torch/named_tensor.h"
#include "torch/process_group.h"

namespace stoker::torch {

/// Compares names, types and shapes of all parameters and buffers with rank 0's. Collective; the same answer
/// on all ranks: Invalid "parameter 3 is 'b' of Float [2] on rank 0, but 'b' of Float [3] on rank 1".
Status compare_models(ProcessGroup& group, const NamedTensors& parameters, const NamedTensors& buffers);

/// The names out of what c10d::Reducer says when parameters took no part in a backward pass; empty for any
/// other text.
std::vector<std::string> names_without_gradient(std::string_view text, const NamedTensors& parameters);

/// What to tell when parameters had no gradient, here (`missing`, which may be empty) or on other ranks:
/// Invalid "no gradient for 'b' on rank 1, ...". Ok when no rank said that it missed any. Works after the
/// group failed; waits a little for what the others have to say.
Status told_without_gradient(ProcessGroup& group, const std::vector<std::string>& missing);

}  // namespace stoker::torch
