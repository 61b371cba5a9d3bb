// The completion script for bash. Thread-safe: no state.
#pragma once

#include <string>

#include "manual/command.h"

namespace stoker::manual {

/// A script that defines the completion when bash reads it. It contains all words and starts no program; only
/// runs and files are looked up when a user completes. bash shows no help texts.
std::string bash_completion(const ProgramText& program);

}  // namespace stoker::manual
