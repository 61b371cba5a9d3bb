// Switches of stoker-train: short names for job file keys, matching the training scripts of IDRIS's course
// DLO-JZ. The parser, --help and the table in docs/commands/train.md derive from this list. No libtorch.
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::train {

struct Switch {
  std::string_view name;             ///< "--epochs"
  std::string_view short_name = "";  ///< "-e"
  std::string_view value = "";       ///< placeholder of its value in the help: "N"; empty: no value
  bool has_opposite = false;         ///< --no-<name> exists
  /// "key=VALUE", several separated by ';'. `{}` is the value, or true and false. Empty: no effect, and
  /// `what` has the reason.
  std::string_view sets = "";
  std::string_view what;  ///< one phrase
};

std::span<const Switch> switches();

/// Settings from the switches of a command line.
struct SwitchSettings {
  std::vector<std::string> set;    ///< as for --set
  std::vector<std::string> notes;  ///< a line for each switch without effect
};

/// Parses the switch at words[at] ("--epochs 3", "--epochs=3", "-e 3") and advances `at` to its last
/// argument. False if it is no switch. Invalid if a value is missing or unexpected.
Result<bool> read_switch(std::span<const std::string> words, std::size_t& at, SwitchSettings& settings);

/// A line for each switch.
std::string switches_help();

}  // namespace stoker::train
