// Variables that nothing sets, and that are nearly those that something sets. Part of the rule
// misspelt-variable; internal to these folders. Thread-safe: no state.
#pragma once

#include "explain/script/rule.h"

namespace stoker::explain {

/// But for capitals and _ the same.
bool is_spelt_alike(std::string_view name, std::string_view other);

/// "$DATADIR" behind DATA_DIR=..., "$LR" behind lr=..., "$dataset_cache" behind cache_dir=dataset_cache.
void find_near_names(const Script& script, Report& report);

}  // namespace stoker::explain
