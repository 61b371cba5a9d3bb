// The ports on which jobs may listen on the cluster's nodes. Used by `stoker run` and `stoker jupyter`.
// Thread-safe: no state.
#pragma once

#include <optional>

#include "job/job.h"
#include "rank/plan.h"

namespace stoker::launch {

/// The port range of the job's site; nothing if the site has none. `stoker`: this executable.
std::optional<net::PortRange> ports_of_site(const job::Job& job, const Path& stoker);

}  // namespace stoker::launch
