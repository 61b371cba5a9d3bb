// What the last lines of a log report: that the program finished, or a result. Internal to this folder.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace stoker::diagnose {

struct NotableLine {
  std::uint64_t line = 0;
  std::string text;
  int rank = -1;
};

struct LogEnd {
  /// The last line that reports that the program finished, if only ordinary lines follow.
  std::optional<std::uint64_t> finished;
  bool is_logged = false;    ///< a logging library printed that line, and no script around the program
  bool is_doubtful = false;  ///< an error is reported closely above that line, which no library printed
  bool has_measure = false;  ///< that line or a neighbour has a measure, which no script around it knows
  bool is_explicit = false;  ///< that line reports an exit code of 0, or that all tests passed
  bool is_emphatic = false;  ///< it is explicit, or names the success: "completed successfully", "0 errors"
  int rank = -1;             ///< of the process that printed that line; -1: unknown
  /// The last line reports a result that the program did not report before: it may have finished.
  std::optional<std::uint64_t> last_result;
};

/// `lines`: the last lines that are not empty, in order.
LogEnd end_of_log(const std::deque<NotableLine>& lines);

}  // namespace stoker::diagnose
