// Parameters in Hydra's override grammar: "lr=tag(log, interval(1e-4, 1))", "opt=choice(sgd, adamw)",
// "n=range(1, 10, 2)", "seed=1,2,3". Pure functions.
#pragma once

#include <string_view>

#include "stoker/status.h"
#include "sweep/space/space.h"

namespace stoker::sweep {

/// The parameter of an override. Invalid with the column of the error, and for what has no equal in a space:
/// glob, sort, shuffle, deletions, and lists or dictionaries as values.
Result<Parameter> parse_hydra_override(std::string_view text);

}  // namespace stoker::sweep
