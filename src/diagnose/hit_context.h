// Completes a hit by the lines around it, where its own line lacks the reason, a name or a place. Internal to
// this folder. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string_view>

#include "diagnose/log_line.h"
#include "diagnose/scan.h"

namespace stoker::diagnose {

/// Completes an end without a reason by the line above it, if that line states one. A place in a program of
/// Fortran counts too.
void complete_from_above(const LinesAbove& above, Hit& hit);

/// The line above a traceback that states a reason: the message of a tool that the program ran. Its number is
/// 0 without one.
NotableLine message_above_traceback(const LinesAbove& above);

/// Completes the failure of a tool by the message that it printed above the traceback.
void complete_from_message(const NotableLine& message, Hit& hit);

/// A command that receives the words of one name with blanks reports each of them on a line. `before`, the
/// hit above `hit`, then names the whole, if a line above has it.
void join_words(const LinesAbove& above, const Hit& hit, Hit& before);

/// Completes the hit by a line `distance` lines below it: the text of an exception of C++, the program of
/// mpirun, the message of a panic, the place of an error of rustc, keys of a checkpoint. False if the line
/// has nothing for the hit.
bool complete_from_below(std::string_view text, std::uint64_t distance, Hit& hit);

}  // namespace stoker::diagnose
