// A signal that asks a program for the stacks of its threads. `stoker rank` sends it to the processes of a
// hanging rank before it ends them. The Python module answers it by faulthandler.
#pragma once

#include <string_view>

namespace stoker {

/// A real-time signal that no library of the field uses: SIGRTMIN + 7 of glibc.
inline constexpr int kStackSignal = 41;

/// The lines before a thread's frames, which backtrace_symbols_fd(3) writes.
inline constexpr std::string_view kMainThreadHeader = "stack of the main thread";
inline constexpr std::string_view kThreadHeader = "stack of thread ";

/// From now on, kStackSignal writes the stacks of all threads to standard error; the program then continues.
/// A handler that is already there is kept. Thread-safe.
void install_stack_signal();

}  // namespace stoker
