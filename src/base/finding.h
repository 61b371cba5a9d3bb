// A finding of a rule: the common type in which rooms report problems to the user. Rooms return findings and
// commands print them. Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/language/message.h"

namespace stoker {

/// Severity.
enum class Level {
  job,     ///< fails the job or loses data
  time,    ///< wastes time
  advice,  ///< advice
};

/// "job", "time" or "advice": the values of the field `level` in JSON output.
constexpr std::string_view to_text(Level level) {
  return level == Level::job ? "job" : level == Level::time ? "time" : "advice";
}

/// The location in a file or log that proves a finding.
struct Evidence {
  std::string where;  ///< "train.sbatch:11", "rank-0005.log:41", a path, or empty
  Message text;       ///< the line or fact
};

/// One finding.
struct Finding {
  std::string rule;  ///< stable identifier for filters and JSON: "truncated-image"
  Level level = Level::advice;
  Message what;  ///< the fact: one line, lower case, no full stop
  std::vector<Evidence> evidence;
  Message cure;  ///< the command, setting or `#SBATCH` line that fixes it; may be empty
};

}  // namespace stoker
