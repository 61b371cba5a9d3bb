// The switches of stoker-train: short names for keys of the job file, those of the training scripts of
// IDRIS's course DLO-JZ. Declared once: the parser, --help and the table in docs/commands/train.md derive
// from it. No libtorch. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace stoker::torch {

struct Switch {
  std::string_view name;             ///< "--epochs"
  std::string_view short_name = "";  ///< "-e"
  std::string_view value = "";       ///< what its value is, for help: "N"; empty: it takes none
  bool has_opposite = false;         ///< there is a --no-<name>, too
  /// "key=VALUE" with ';' between several; `{}` stands for the value, or for true and false. Empty: it
  /// changes nothing, and `what` says why.
  std::string_view sets = "";
  std::string_view what;  ///< one phrase
};

std::span<const Switch> switches();

/// What the switches of a command line amount to.
struct Switched {
  std::vector<std::string> set;    ///< as for --set
  std::vector<std::string> notes;  ///< a line for each that changes nothing
};

/// Reads the switch at words[at] ("--epochs 3", "--epochs=3", "-e 3") and leaves `at` at its last word. False
/// if it is none. Invalid when a value is missing, or given where none belongs.
Result<bool> read_switch(std::span<const std::string> words, std::size_t& at, Switched& switched);

/// A line for each switch.
std::string switches_help();

}  // namespace stoker::torch
