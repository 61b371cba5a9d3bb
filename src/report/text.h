// A report as plain text. Used by `stoker report`. Thread-safe: no state.
#pragma once

#include <span>
#include <string>

#include "report/facts.h"

namespace stoker::report {

/// For a terminal: a few screens, without control characters except newlines.
std::string to_plain_text(std::span<const RunFacts> runs);

}  // namespace stoker::report
