// Whether the job continued after an error until a later end, which then has a different cause. Pure
// functions. Internal to this folder.
#pragma once

#include <vector>

#include "diagnose/suspect.h"

namespace stoker::diagnose {

/// Whether the hit is a warning that does not explain the later end of its process, or its log does not end
/// near it. `end`: the hits at the end of the logs.
bool is_passing_warning(const Suspect& suspect, const std::vector<Suspect>& end);

/// Whether the process continued after the error for a while and failed of a later one. `end`: as above.
bool was_handled(const Suspect& suspect, const std::vector<Suspect>& end);

/// Whether the job continued for a while after the failure, or was started again, until the external end.
bool was_survived(const Suspect& cause, const Suspect& outside);

/// Whether the job may have survived the error: it is far from the end of its log, or the log ends with a
/// success, perhaps only that of a script around the program that reported the error.
bool may_be_survived(const Suspect& cause);

}  // namespace stoker::diagnose
