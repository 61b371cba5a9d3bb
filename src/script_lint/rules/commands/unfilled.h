// Unfilled values without placeholder markers. Parts of the rule placeholder; internal to the rules.
// Thread-safe: no state.
#pragma once

#include "script_lint/rule.h"

namespace stoker::script_lint {

/// "NAME=" where a file name begins with $NAME, "--output #path to results", and names in angle brackets
/// after a syntax error.
void find_unfilled(const Script& script, FindingReport& report);

/// "conda activate env_name", "python script_name.py", "./program_name": a generic name instead of a real
/// one.
std::optional<std::string> generic_name(const ProgramCall& call, std::string_view text);

}  // namespace stoker::script_lint
