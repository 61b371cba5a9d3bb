// Splits a command line into arguments as a POSIX shell quotes them, without being a shell. Used for settings
// of type `words`. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace stoker::config {

/// Blanks separate; '...' is literal; "..." keeps blanks and knows \" \\ \$ \`; a backslash outside quotes
/// takes the next character as it is. What only a shell could do (pipes, redirections, variables,
/// substitution) is Invalid, unless quoted; `${` is kept for this room's own references. Error texts have no
/// subject.
Result<std::vector<std::string>> split_words(std::string_view text);

/// The command line that split_words reads back as `words`.
std::string join_words(const std::vector<std::string>& words);

}  // namespace stoker::config
