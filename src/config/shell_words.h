// Splits a command line into arguments by POSIX shell quoting, without a shell. Used for settings of type
// `words`. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::config {

/// Blanks separate arguments. '...' is literal. "..." keeps blanks and supports \" \\ \$ \`. A backslash
/// outside quotes escapes the next character, and joins lines at a line end. Unquoted shell syntax (pipes,
/// redirections, variables, substitution) is Invalid. `${` is kept for references. Errors have no subject.
Result<std::vector<std::string>> split_words(std::string_view text);

/// Like split_words, but a second line, words with * or ? (without =) and a leading ~ are Invalid.
Result<std::vector<std::string>> split_command(std::string_view text);

/// A command line that split_words() splits into `words`.
std::string join_words(const std::vector<std::string>& words);

}  // namespace stoker::config
