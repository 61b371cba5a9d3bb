// The completion script for fish. Thread-safe: no state.
#pragma once

#include <string>

#include "manual/command.h"

namespace stoker::manual {

/// A script for a completions folder of fish (as stoker.fish), or for `source`. It contains all words with
/// their help and starts no program; only runs and files are looked up when a user completes. fish offers the
/// values of every argument of a command at each position.
std::string fish_completion(const ProgramText& program);

}  // namespace stoker::manual
