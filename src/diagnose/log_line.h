// Normalizes a log line for the rules: strips launcher prefixes and terminal escapes, and extracts rank and
// time. Internal to this folder. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::diagnose {

struct LogLine {
  std::string text;            ///< without colours, rank prefixes and binary bytes
  int rank = -1;               ///< -1 if unknown
  bool is_of_worker = false;   ///< Ray prints it for one of its workers
  std::optional<double> time;  ///< only for comparison: ignores the year, all months have 31 days
};

/// Maximum number of bytes of a line that rules see.
inline constexpr std::size_t kLongestLogLine = 4096;

/// Parses the line; only time_of parses the time.
LogLine read_log_line(std::string_view raw);

/// The lines of the block above the current one.
struct LinesAbove {
  std::string_view text;     ///< whole lines
  std::uint64_t number = 1;  ///< of the current line

  /// The text of up to `count` of them, normalized, the nearest first.
  std::vector<std::string> nearest(std::size_t count) const;
};

/// The time in a line in the formats of glog, ISO 8601, Python's logging or syslog.
std::optional<double> time_of(std::string_view text);

/// The rank in "[PG 0 Rank 3]", "[Rank 3]", "RANK 3"; -1 without one.
int rank_named_in(std::string_view text);

/// The node, and with srun the tasks, that Slurm or the kernel names in a line about a failed process.
struct NodeInLine {
  std::string node;         ///< "" without one
  std::optional<int> task;  ///< if it is a single one
};
NodeInLine node_named_in(std::string_view text);

}  // namespace stoker::diagnose
