// The order of failures in a script: a command that failed, and what the script then lacked. Pure functions.
// Internal to this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/suspect.h"

namespace stoker::diagnose {

/// The lines of a fatal failure are within this distance of each other and of the end.
inline constexpr std::uint64_t kShortPause = 60;
/// After a survived error, a log continues for more lines than this before the fatal one.
inline constexpr std::uint64_t kLongPause = 1000;
/// The last error of a script is within this distance of its end.
inline constexpr std::uint64_t kFinalLines = 8;
/// A warning is a cause as a last resort if at most this number of lines follow it.
inline constexpr std::uint64_t kAfterWarning = 1;

/// Position in a log: an overwrite with \r counts like a line.
std::uint64_t position_of(const Hit& hit);
/// The position after the last line.
std::uint64_t end_of(const LogScan& log);

/// Lines without a hit between a failure and a later position in its log.
std::uint64_t quiet_lines(const Suspect& cause, std::uint64_t until);

/// Whether the script continued after the hit, which is then a cause only as a last resort: it failed of
/// something else later. `end`: the hits at the end of the logs.
bool script_continued_after(const Suspect& suspect, const std::vector<Suspect>& end);

}  // namespace stoker::diagnose
