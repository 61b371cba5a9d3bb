// Commands that wait for terminal input. Part of the rule no-terminal; internal to these folders.
// Thread-safe: no state.
#pragma once

#include "script_lint/rule.h"

namespace stoker::script_lint {

/// "salloc -N 1", "srun --pty bash": a shell that exits at once without a terminal.
bool opens_shell(const ProgramCall& call);

/// Shells in allocations, containers and environments that expect typed commands.
void find_open_shells(const Script& script, FindingReport& report);

}  // namespace stoker::script_lint
