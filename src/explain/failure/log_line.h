// One line of anybody's log as rules want it: without what a launcher or a terminal put around it, and with
// what that tells, the rank and the time. Internal to this room. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker::explain {

struct LogLine {
  std::string text;            ///< without colours, prefixes of ranks, bytes that are no text
  int rank = -1;               ///< -1 where nothing tells
  std::optional<double> time;  ///< for comparing alone: no year, all months of 31 days
};

/// Longest line that is looked at; of a longer one a part.
inline constexpr std::size_t kLongestLogLine = 4096;

/// Reads the line; its time is looked for only by time_of.
LogLine read_log_line(std::string_view raw);

/// The time that stands in a line as glog, ISO 8601, Python's logging or syslog write it.
std::optional<double> time_of(std::string_view text);

/// "[PG 0 Rank 3]", "[Rank 3]", "RANK 3": a rank that a line names as its own; -1 for none.
int rank_named_in(std::string_view text);

}  // namespace stoker::explain
