// Declares and parses the arguments of one command, and prints its --help. Used by every file of cli/. CLI11
// is visible in arguments.cc only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "manual/command.h"
#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::cli {

class Output;

/// The arguments of one command. Targets must outlive the call of parse.
class Arguments {
 public:
  /// `command`: "data pack"; `summary`: one sentence for --help.
  Arguments(std::string_view command, std::string_view summary);

  /// A required argument, in order of declaration.
  void positional(std::string_view name, std::string* target, std::string_view what);
  /// An optional argument, after all required ones.
  void optional_positional(std::string_view name, std::string* target, std::string_view what);
  /// All remaining arguments; at least `at_least`.
  void positional_list(std::string_view name, std::vector<std::string>* target, std::string_view what,
                       std::size_t at_least = 0);
  /// Everything after "--", unchanged.
  void rest(std::string_view name, std::vector<std::string>* target, std::string_view what);

  /// A boolean flag: "--strict" or "-f,--follow".
  void flag(std::string_view names, bool* target, std::string_view what);
  /// An option with a value. `value_name` as --help shows it: N, SIZE, PATH. The target's value at
  /// declaration is the default that --help shows (an empty optional or string: none). An option with a
  /// vector target may be repeated.
  void option(std::string_view names, std::string* target, std::string_view value_name,
              std::string_view what);
  void option(std::string_view names, std::int64_t* target, std::string_view value_name,
              std::string_view what);
  void option(std::string_view names, std::optional<std::int64_t>* target, std::string_view value_name,
              std::string_view what);
  void option(std::string_view names, std::optional<ByteCount>* target, std::string_view value_name,
              std::string_view what);
  void option(std::string_view names, std::optional<Duration>* target, std::string_view value_name,
              std::string_view what);
  void option(std::string_view names, std::vector<std::string>* target, std::string_view value_name,
              std::string_view what);

  /// All values of the argument or option that was declared last, for completion and man pages. Parsing does
  /// not check them.
  void choices(std::span<const std::string_view> values);

  /// A command line shown under "Example:" in --help. The tests run all examples.
  void example(std::string_view command_line);

  /// Fills the targets and returns nothing. After --help returns exit code 0, after an error prints it and
  /// returns 2. For an output that receives the description, stores it and returns 0 without parsing.
  std::optional<int> parse(std::span<const std::string> words, Output& out);

  /// The declarations, with --help.
  manual::CommandText description() const;

 private:
  // Where a positional argument is stored: `many` for a list.
  struct PositionalTarget {
    std::string* one;
    std::vector<std::string>* many;
  };
  // Where an option is stored: `flag`, or `assign` for a value.
  struct OptionTarget {
    bool* flag;
    std::function<Status(const std::string&)> assign;
  };
  void add(manual::ArgumentText argument, PositionalTarget target);
  void add(std::string_view names, std::string_view value_name, std::string_view what,
           std::string shown_default, std::function<Status(const std::string&)> assign);
  Status parse_words(std::span<const std::string> words, bool* wants_help);
  Status assign_positionals(std::span<const std::string> words);
  std::vector<std::string_view> option_names() const;

  manual::CommandText text_;
  std::vector<PositionalTarget> positionals_;  // of text_.arguments
  std::vector<OptionTarget> options_;          // of text_.options
  std::vector<std::string>* rest_ = nullptr;
  manual::ValueHint* last_ = nullptr;  // of the argument or option declared last
  bool wants_json_ = false;
};

}  // namespace stoker::cli
