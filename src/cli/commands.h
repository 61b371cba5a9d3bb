// The table of commands: one line each in commands.cc. Used by the main program and by the tests that run
// every command's --help.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/output.h"

namespace stoker::cli {

/// A verb ("run") or a noun with a verb ("data pack").
struct CommandEntry {
  std::string_view name;
  std::string_view summary;  ///< what it does, one line, for `stoker --help`
  /// Parses the words after the name, does it, prints, returns the exit code.
  int (*run)(std::span<const std::string> words, Output& out);
};

/// All commands, in the order in which people meet them.
std::span<const CommandEntry> commands();

/// The whole program but for the process's own set-up: finds the command and runs it. Returns the exit code.
int dispatch(std::span<const std::string> words, Output& out);

/// `--json` among the words before a "--".
bool wants_json(std::span<const std::string> words);

}  // namespace stoker::cli
