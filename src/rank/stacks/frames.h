// Reads stacks of a process as text, as printed by py-spy, Python's faulthandler, gdb, or a program with
// base/stack_signal.h. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::rank {

/// One function call.
struct Frame {
  std::string function;     ///< "+0x40" or "??" without symbols
  std::string file;         ///< as printed; empty if unknown
  std::int64_t line = 0;    ///< 0: unknown
  bool in_program = false;  ///< in the program itself; then `file` may be empty
};

/// The frames of the main thread, innermost first; empty if the text has no stack of it. Of several stacks
/// the last one counts.
std::vector<Frame> main_thread_frames(std::string_view text);

/// Whether the innermost frames wait for a child process: a launcher, not the training.
bool waits_for_child(const std::vector<Frame>& frames);

/// "Queue.get (queue.py:171), called by load (train.py:12)": the innermost frame and the innermost one
/// outside of installed libraries. "" without frames.
std::string summarize(const std::vector<Frame>& frames);

}  // namespace stoker::rank
