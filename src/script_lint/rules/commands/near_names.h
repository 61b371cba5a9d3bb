// Unset variables with a name similar to a set one. Part of the rule misspelt-variable; internal to these
// folders. Thread-safe: no state.
#pragma once

#include "script_lint/rule.h"

namespace stoker::script_lint {

/// Equal except for case and _.
bool is_spelt_alike(std::string_view name, std::string_view other);

/// "$DATADIR" after DATA_DIR=..., "$LR" after lr=..., "$dataset_cache" after cache_dir=dataset_cache.
void find_near_names(const Script& script, FindingReport& report);

}  // namespace stoker::script_lint
