// Variables that the shell expands differently than intended: array elements without braces, names in single
// quotes. Parts of several rules; internal to these folders. Thread-safe: no state.
#pragma once

#include "script_lint/rule.h"

namespace stoker::script_lint {

/// "python a.py --data '$DATA'": literal, although DATA is set.
void find_kept_word(const Script& script, FindingReport& report);

/// sets=("a","b"), sets=["a", "b"]: one word, or a command.
void find_foreign_lists(const Script& script, FindingReport& report);

}  // namespace stoker::script_lint
