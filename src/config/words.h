// Splits a command line into arguments as a POSIX shell quotes them, without being a shell. Used for settings
// of type `words`. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace stoker::config {

/// Blanks separate; '...' is literal; "..." keeps blanks and knows \" \\ \$ \`; a backslash outside quotes
/// takes the next character as it is, and one before a line's end joins the next line. What only a shell
/// could do (pipes, redirections, variables, substitution) is Invalid, unless quoted; `${` is kept for this
/// room's own references. Error texts have no subject.
Result<std::vector<std::string>> split_words(std::string_view text);

/// split_words of a command: a second line, names with * or ? (where no = is) and a home folder's ~ are
/// Invalid, too.
Result<std::vector<std::string>> split_command(std::string_view text);

/// The command line that split_words reads back as `words`.
std::string join_words(const std::vector<std::string>& words);

}  // namespace stoker::config
