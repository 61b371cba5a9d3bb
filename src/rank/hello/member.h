// The process of one rank in a `stoker hello`: `stoker rank --hello`. Joins the session, does what it is
// asked one thing after another, tells what it found, and ends when the session does. It changes the process,
// so it is the whole program.
#pragma once

#include "base/status.h"

namespace stoker::rank::hello {

/// Answers the session that STOKER_WORLD invites to. Returns the exit code; an error when it cannot be
/// joined.
Result<int> run_member();

}  // namespace stoker::rank::hello
