// The parameters of a sweep file: Stoker's form and that of Weights & Biases. Pure functions but for errors.
#pragma once

#include <string>
#include <vector>

#include "sweep/file/node_values.h"
#include "sweep/space/space.h"

namespace stoker::sweep {

/// `space:`. Each parameter is a list of values, a single value, {values: [...]}, or {min:, max:}; the latter
/// with log, step and type, and both with when.
std::vector<Parameter> read_space(const config::Node& map, NodeValues& values);

/// `parameters:` of W&B. Nested ones have names with dots.
std::vector<Parameter> read_wandb_parameters(const config::Node& map, NodeValues& values);

}  // namespace stoker::sweep
