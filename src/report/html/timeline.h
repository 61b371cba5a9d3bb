// A timeline of one traced step: a row per rank with its phases, and its communication in a lane below.
// Positions are in percent, to fit phone and desktop. Thread-safe: no state.
#pragma once

#include <string>

#include "report/facts.h"

namespace stoker::report::html {

/// Rows of at most `most` ranks and a time axis; "" for an empty step.
std::string draw_timeline(const TracedStep& traced, std::size_t most);

}  // namespace stoker::report::html
