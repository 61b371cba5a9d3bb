// Lines with which a program itself reports that its work failed, in plain words and without a level: "score
// 21.3 deviates from reference 27.8", "STOP: wrong grid". Pure functions. Internal to this folder.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "diagnose/log_end.h"

namespace stoker::diagnose {

/// Whether the line is such a verdict. A success above it is not the last word of the program.
bool states_failure(std::string_view line);

/// As `states_failure`, without counts of parts that failed: "6 complete, 2 aborted" may be a good result.
bool states_failure_of_whole(std::string_view line);

/// Whether the line may be such a verdict, or the opposite: "error rate 0.012 is below threshold 0.05".
bool may_state_failure(std::string_view line);

/// Whether the line counts failures and finds none: "fatal errors: 0".
bool counts_no_failure(std::string_view line);

/// The verdict at the end of a log.
struct OwnVerdict {
  NotableLine line;   ///< its main line
  std::string words;  ///< with the words of a line beside it, or of the reason above
};

/// `lines`: the last lines that are not empty, in order.
std::optional<OwnVerdict> own_verdict(const std::deque<NotableLine>& lines);

}  // namespace stoker::diagnose
