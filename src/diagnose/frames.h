// Frames and last lines of Python's tracebacks: the user's line, the library of a frame, and what a line of
// code needs. Internal to this folder. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker::diagnose {

/// "train.py:88" of `  File "/users/ada/train.py", line 88, in main`, of a dump or a rich traceback; "" for
/// any other line and for frames of libraries.
std::string frame_of(std::string_view text);

/// The library of a frame, "" for the user's code; nothing for any other line.
std::optional<std::string> library_of(std::string_view text);

/// The part of a library that a frame belongs to, in whose traceback an unspecific exception has a known
/// reason: "torch.load". Points to a constant.
std::string_view part_of_library(std::string_view text);

/// Whether the frame of a dump is of a function of Python's library that waits: `join`, `poll`, `recv`.
bool is_waiting_frame(std::string_view text);

/// The Python version that a line of code needs by its syntax: "3.12"; "" if unknown. `message`: of the
/// syntax error. Points to a constant.
std::string_view python_needed(std::string_view code, std::string_view message);

/// Whether the line is the last one of a traceback: "KeyError: 'lr'", "torch.OutOfMemoryError: text".
bool is_exception(std::string_view text);

}  // namespace stoker::diagnose
