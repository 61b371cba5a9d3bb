// What stands behind the word module and is none of its commands. Part of the rule misspelt-command; internal
// to these folders.
#pragma once

#include <string_view>

#include "explain/script/rule.h"

namespace stoker::explain {

/// "module cuda/12.1", "module load module load cuda". `first` is the first word of the call.
void find_module_words(const Call& call, std::string_view first, const Script& script, Report& report);

}  // namespace stoker::explain
