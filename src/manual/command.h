// The declared commands of a program: arguments, options and their help. --help, completion
// scripts and man pages are rendered from these values. Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::manual {

/// What completes a value on a command line; empty: nothing does.
struct ValueHint {
  bool files = false;  ///< files and folders
  bool folders = false;
  bool runs = false;  ///< the ids of runs, and `last`
  std::vector<std::string> choices;

  bool is_empty() const { return !files && !folders && !runs && choices.empty(); }
};
/// The hint of a placeholder in --help: files for FILE, folders for DIR, runs for RUN, all of them for
/// "RUN|DIR". Words in lower case between bars are choices: "drop|nan|NUMBER".
ValueHint hint_of(std::string_view placeholder);

/// A positional argument.
struct ArgumentText {
  std::string name;  ///< its placeholder: "SOURCE"
  std::string what;  ///< help
  bool is_required = false;
  bool is_list = false;  ///< all remaining arguments; only for the last one
  ValueHint value;
};

struct OptionText {
  std::string names;       ///< "-j,--jobs"
  std::string value_name;  ///< placeholder; empty for a flag
  std::string what;        ///< help
  std::string shown_default;
  bool is_repeatable = false;
  ValueHint value;

  bool takes_value() const { return !value_name.empty(); }
};
/// "-j" and "--jobs" of "-j,--jobs".
std::vector<std::string_view> flags_of(const OptionText& option);

struct CommandText {
  std::string name;      ///< "data pack"
  std::string headline;  ///< one line of the list of commands
  std::string summary;   ///< one sentence
  std::vector<ArgumentText> arguments;
  std::optional<ArgumentText> rest;  ///< everything after "--"
  std::vector<OptionText> options;
  std::vector<std::string> examples;  ///< command lines
};
/// "stoker data pack SOURCE OUT [options]".
std::string usage_text(const CommandText& command);
/// The text of --help.
std::string help_text(const CommandText& command);

/// All commands of `stoker`, in the order of the list of commands.
struct ProgramText {
  std::string version;
  std::vector<CommandText> commands;
};

/// A word that may follow `stoker` or a group of commands.
struct CommandWord {
  std::string name;
  std::string headline;  ///< of a group: its commands
};
/// The words that may follow `group`; with "" those after `stoker`.
std::vector<CommandWord> words_after(const ProgramText& program, std::string_view group);
/// "data", "checkpoint", ...: the first words of the commands of two words.
std::vector<std::string> groups_of(const ProgramText& program);
/// The names of a group's commands if the group is a command itself, with a file as its first argument; else
/// empty.
std::vector<std::string> verbs_of_command(const ProgramText& program, std::string_view name);

}  // namespace stoker::manual
