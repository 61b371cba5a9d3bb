// What a rule found: the one shape in which rooms report things a person should know. Rooms yield findings,
// the command renders them. Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker {

/// How much it matters.
enum class Level {
  job,     ///< loses the job, or data
  time,    ///< loses time
  advice,  ///< worth knowing
};

/// "job", "time" or "advice": the values of the field `level` in JSON output.
constexpr std::string_view to_text(Level level) {
  return level == Level::job ? "job" : level == Level::time ? "time" : "advice";
}

/// A place in a file or log that shows it.
struct Evidence {
  std::string where;  ///< "train.sbatch:11", "rank-0005.log:41", a path, or empty
  std::string text;   ///< the line or fact itself
};

/// One thing found.
struct Finding {
  std::string rule;  ///< stable name, for filtering and JSON: "truncated-image"
  Level level = Level::advice;
  std::string what;  ///< the fact, one line, lower case, no full stop
  std::vector<Evidence> evidence;
  std::string cure;  ///< the command, setting or `#SBATCH` line that mends it; may be empty
};

}  // namespace stoker
