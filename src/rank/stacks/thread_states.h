// What the kernel knows of the threads of a process: which call each of them sleeps in, and on which file.
// Thread-safe: no state.
#pragma once

#include <string>
#include <sys/types.h>

#include "stoker/text.h"

namespace stoker::rank {

/// One line for the threads in the same place: `3 threads (pt_autograd_0, ...): asleep in futex`,
/// `1 thread (python): in read of /lustre/train.tar`. Threads whose call may not be read have their state
/// alone.
/// "" without such a process.
std::string thread_states(pid_t pid, const Path& proc = "/proc");

}  // namespace stoker::rank
