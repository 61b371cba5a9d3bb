// Helpers for variables and words of calls. Used by the rules of this folder and its parent. Thread-safe: no
// state.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "script_lint/rule.h"

namespace stoker::script_lint {

/// Whether unknown code may set variables: a sourced script, eval.
bool has_external_settings(const Script& script);

/// A valid variable name.
bool is_name(std::string_view text);

/// Visits every plain variable in the words of a call, including redirections and arithmetic.
void for_each_variable(const ProgramCall& call,
                       const std::function<void(const bash::WordPiece& piece)>& visit);

/// Visits $NAME of "if [ -z "$NAME" ]" with exit in its body: the script ends if it is empty.
void for_each_exit_guard(const bash::List& list,
                         const std::function<void(const bash::WordPiece& piece)>& visit);

/// The text of a word with known variables expanded.
std::string resolved_text(const bash::Word& word, const Script& script);

/// Only prints or tests a condition: a wrong word does no damage.
bool only_prints(const ProgramCall& call);

/// Whether the name has a lower-case letter.
bool has_lower(std::string_view name);

}  // namespace stoker::script_lint
