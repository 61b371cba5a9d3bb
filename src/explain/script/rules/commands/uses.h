// Where a script's variables may get values, and how words of its calls read. Parts of the rules
// of this folder and the one above; internal to them. Thread-safe: no state.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "explain/script/rule.h"

namespace stoker::explain {

/// Values may come from what this cannot read: a script that is sourced, eval.
bool takes_settings(const Script& script);

/// Letters, digits and _, and no digit first.
bool is_name(std::string_view text);

/// Calls back for every variable without an operation in the words of a call, its command's redirections
/// and arithmetic included.
void for_variables(const Call& call, const std::function<void(const bash::Piece& piece)>& visit);

/// Calls back for $NAME of "if [ -z "$NAME" ]" with exit in its body: the script ends where it is empty.
void for_ending_tests(const bash::List& list, const std::function<void(const bash::Piece& piece)>& visit);

/// The whole text of a word, with what its variables hold where that is known.
std::string resolved_text(const bash::Word& word, const Script& script);

/// Prints, or looks at a condition: nothing is lost with a word of it.
bool only_speaks(const Call& call);

/// Whether one of its letters is a small one.
bool has_lower(std::string_view name);

}  // namespace stoker::explain
