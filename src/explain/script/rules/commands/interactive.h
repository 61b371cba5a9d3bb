// Commands that wait for somebody at a terminal. Part of the rule no-terminal; internal to these folders.
// Thread-safe: no state.
#pragma once

#include "explain/script/rule.h"

namespace stoker::explain {

/// "salloc -N 1", "srun --pty bash": a shell that ends at once where nobody types.
bool opens_shell(const Call& call);

/// Shells in allocations, containers and environments, where the work was meant to be typed into them.
void find_open_shells(const Script& script, Report& report);

}  // namespace stoker::explain
