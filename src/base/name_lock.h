// A lock by name among the processes of this host and network namespace, without a file: a socket bound to an
// abstract name, which the kernel frees when the last process with the socket ends. Thread-safe: no state.
#pragma once

#include <string>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker {

/// The lock, held while the descriptor is open; not open if another process has it. Programs that this
/// process starts do not inherit it.
Result<Fd> lock_name(const std::string& name);

}  // namespace stoker
