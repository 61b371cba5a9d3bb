// Variables of which the shell makes something else than was meant: elements of lists without braces, names
// in single quotes. Parts of several rules; internal to these folders. Thread-safe: no state.
#pragma once

#include "explain/script/rule.h"

namespace stoker::explain {

/// "python a.py --data '$DATA'": the letters, where DATA is set.
void find_kept_word(const Script& script, Report& report);

/// sets=("a","b"), sets=["a", "b"]: one word, or a command.
void find_lists_of_others(const Script& script, Report& report);

}  // namespace stoker::explain
