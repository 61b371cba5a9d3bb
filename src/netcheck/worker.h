// The process of one rank in a `stoker hello`: `stoker rank --hello`. Joins the session, executes its
// requests in order, reports the results, and exits with the session. It changes the process, so it is the
// whole program.
#pragma once

#include "stoker/status.h"

namespace stoker::netcheck {

/// Serves the session of STOKER_WORLD. Returns the exit code; fails when it cannot join.
Result<int> run_network_check_worker();

}  // namespace stoker::netcheck
