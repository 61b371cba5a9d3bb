// The table of commands in commands.cc. Used by main and by the tests of --help.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/output.h"
#include "manual/command.h"

namespace stoker::cli {

/// A verb ("run"), or a group with a verb ("data pack").
struct CommandEntry {
  std::string_view name;
  std::string_view summary;  ///< one line for `stoker --help`
  /// Parses the arguments after the name, runs the command, prints, returns the exit code.
  int (*run)(std::span<const std::string> words, Output& out);
};

/// All commands, in the order of `stoker --help`.
std::span<const CommandEntry> commands();

/// Finds the command, runs it and returns the exit code.
int dispatch(std::span<const std::string> words, Output& out);

/// The declarations of all commands, for completion scripts and man pages. Runs no command.
manual::ProgramText program_text();

/// Whether `--json` is among the arguments before "--".
bool wants_json(std::span<const std::string> words);

}  // namespace stoker::cli
