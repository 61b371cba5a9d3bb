// Wrong subcommands of module. Part of the rule misspelt-command; internal to these folders.
#pragma once

#include <string_view>

#include "script_lint/rule.h"

namespace stoker::script_lint {

/// "module cuda/12.1", "module load module load cuda". `first` is the first word of the call.
void find_module_words(const ProgramCall& call, std::string_view first, const Script& script,
                       FindingReport& report);

}  // namespace stoker::script_lint
