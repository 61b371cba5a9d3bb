// Replaces a cause by the hit that states it more precisely: the exception that ended the process, the proxy
// that refused, the dump of a crash. Pure functions. Internal to this folder.
#pragma once

#include <vector>

#include "diagnose/suspect.h"

namespace stoker::diagnose {

/// The hit that states the error best, or the cause itself. `end`: the hits at the end of the logs, as in the
/// functions below.
Suspect specific_cause(const Suspect& cause, const std::vector<Suspect>& end);

/// The dump of the stack that follows a crash, or the actor of Ray whose process ended; else the cause
/// itself.
Suspect detail_of_crash(const Suspect& cause, const std::vector<Suspect>& end);

/// The record of the peer that a rank waited for, in place of its timeout; else the timeout itself.
Suspect missing_peer(const Suspect& hang, const std::vector<Suspect>& end);

}  // namespace stoker::diagnose
