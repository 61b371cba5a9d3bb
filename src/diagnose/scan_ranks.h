// What a scan remembers about ranks: their last lines, and the ends that a launcher reports. Internal to this
// folder. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stoker::diagnose {

/// A line of a launcher about the end of tasks: "task 6: Exited with exit code 1".
struct TaskExit {
  std::uint64_t line = 0;
  std::string text;
  int task = -1;  ///< -1: several
};

/// What ranks had printed before the first line about a peer that is gone or absent.
struct RankSurvey {
  std::map<int, std::vector<std::string>> last;  ///< by rank: the last lines, the latest first
  std::map<int, std::uint64_t> line;             ///< by rank: the number of the latest
  int world_size = 0;                            ///< 0: not printed
  bool is_done = false;
};

}  // namespace stoker::diagnose
