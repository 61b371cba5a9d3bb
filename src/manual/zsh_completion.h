// The completion script for zsh. Thread-safe: no state.
#pragma once

#include <string>

#include "manual/command.h"

namespace stoker::manual {

/// A script for a folder of fpath (as _stoker), or for `source`. It contains all words with their help and
/// starts no program; only runs and files are looked up when a user completes.
std::string zsh_completion(const ProgramText& program);

}  // namespace stoker::manual
