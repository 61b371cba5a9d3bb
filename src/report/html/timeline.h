// The picture of one traced step: a row for each rank, its phases one after the other, its exchanges with
// other ranks in a lane below. Positions are in percent, so that it fits phone and desktop. Thread-safe: no
// state.
#pragma once

#include <string>

#include "report/facts.h"

namespace stoker::report::html {

/// Rows of at most `most` ranks and a line with the times at both ends; "" when nothing took time.
std::string draw_timeline(const TracedStep& traced, std::size_t most);

}  // namespace stoker::report::html
