// The line at the end of a log in which the program reports its failure in its own words. Internal to this
// folder. Thread-safe: no state.
#pragma once

#include <deque>
#include <optional>
#include <span>

#include "diagnose/log_end.h"
#include "diagnose/scan.h"

namespace stoker::diagnose {

struct OwnError {
  Hit hit;
  bool is_verdict = false;  ///< without a level, in the last lines
};

/// The last such line, if only lines without progress follow; nothing for the end of a program that finished,
/// and for a line that a rule knows. `last`: the last lines of the log. `reasons`: reports of data that the
/// program did not find, which complete the words.
std::optional<OwnError> find_own_error(const std::deque<NotableLine>& last, const LogEnd& end,
                                       std::span<const NotableLine> reasons);

}  // namespace stoker::diagnose
