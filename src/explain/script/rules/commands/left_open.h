// Places that are left open though nothing marks them as such in a word. Parts of the rule placeholder;
// internal to the rules. Thread-safe: no state.
#pragma once

#include "explain/script/rule.h"

namespace stoker::explain {

/// "NAME=" where a file's name begins with $NAME, "--output #path to results", and names in angle brackets
/// behind the place where the shell stops.
void find_left_open(const Script& script, Report& report);

/// "conda activate env_name", "python script_name.py", "./program_name": what is asked for, and not one of
/// it.
std::optional<std::string> name_of_kind(const Call& call, std::string_view text);

}  // namespace stoker::explain
