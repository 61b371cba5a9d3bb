// Declares and parses one command's words. The same declarations make its --help. Used by every file of cli/;
// the parser behind it (CLI11) is seen by arguments.cc only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"

namespace stoker::cli {

class Output;

/// One command's arguments. Targets must outlive the call of parse.
class Arguments {
 public:
  /// `command`: "data pack"; `summary`: what it does, in a sentence.
  Arguments(std::string_view command, std::string_view summary);

  /// A word that must be there, in order of declaration.
  void positional(std::string_view name, std::string* target, std::string_view what);
  /// A word that may be left out; only after all that must be there.
  void optional_positional(std::string_view name, std::string* target, std::string_view what);
  /// All remaining words; at least `at_least`.
  void positional_list(std::string_view name, std::vector<std::string>* target, std::string_view what,
                       std::size_t at_least = 0);
  /// Everything after "--", as it is.
  void rest(std::string_view name, std::vector<std::string>* target, std::string_view what);

  /// "--strict" or "-f,--follow": present or not.
  void flag(std::string_view names, bool* target, std::string_view what);
  /// An option with a value. `value_name` as --help shows it: N, SIZE, PATH. The target's value at
  /// declaration is the default that --help shows (an empty optional or string: none). A vector target may be
  /// given several times.
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

  /// A command line shown under "Example:" in --help; several may be given. The tests run them.
  void example(std::string_view command_line);

  /// Fills the targets. On --help prints it and gives exit 0; on bad words prints what is wrong and gives
  /// exit 2; otherwise nothing: go on.
  std::optional<int> parse(std::span<const std::string> words, Output& out);

  /// What --help prints.
  std::string help() const;

 private:
  struct Positional {
    std::string name;
    std::string what;
    std::size_t at_least;
    bool is_list;
    std::string* one;
    std::vector<std::string>* many;
  };
  struct Option {
    std::string names;
    std::string value_name;  // empty: a flag
    std::string what;
    std::string shown_default;
    bool* flag;
    std::function<Status(const std::string&)> assign;
  };
  void add(std::string_view names, std::string_view value_name, std::string_view what,
           std::string shown_default, std::function<Status(const std::string&)> assign);
  Status parse_words(std::span<const std::string> words, bool* wants_help);
  Status assign_positionals(std::span<const std::string> words);
  std::vector<std::string_view> option_names() const;
  std::string usage() const;

  std::string command_;
  std::string summary_;
  std::vector<Positional> positionals_;
  std::optional<Positional> rest_;
  std::vector<Option> options_;
  std::vector<std::string> examples_;
  bool wants_json_ = false;
};

}  // namespace stoker::cli
