// Command lines of tasks: which ones need a shell, and templates with placeholders. Thread-safe: no state.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::farm {

/// The arguments of a line that a shell would only split: words, quotes and backslashes. nullopt if it has
/// other shell syntax, begins with an assignment or a builtin of the shell, or is empty: a shell must run it.
/// Starting a program without a shell in between takes half of the time.
std::optional<std::vector<std::string>> plain_words(std::string_view line);

/// Whether every POSIX shell runs the line as bash does: words, quotes, pipes, lists and simple redirections,
/// without builtins except a plain `echo`. A small shell starts in half of the time.
bool is_portable_line(std::string_view line);

/// Returns the value of a placeholder ("lr", "1", ""), or nullopt.
using PlaceholderValues = std::function<std::optional<std::string>(std::string_view name)>;

/// A command with {name}, {1} or {} in it. `{{` and `}}` are braces.
class CommandPattern {
 public:
  /// A command of one argument with a blank is a line for the shell. Invalid for a brace without its partner.
  static Result<CommandPattern> parse(const std::vector<std::string>& command);

  /// The placeholders, each once.
  const std::vector<std::string>& names() const { return names_; }
  /// The command line, with values quoted for the shell. Missing values are left out.
  std::string fill(const PlaceholderValues& values) const;

 private:
  // Text, or the name of a placeholder.
  struct PatternPart {
    std::string text;
    bool is_name = false;
  };
  std::vector<std::vector<PatternPart>> arguments_;
  std::vector<std::string> names_;
  bool is_shell_line_ = false;
};

}  // namespace stoker::farm
