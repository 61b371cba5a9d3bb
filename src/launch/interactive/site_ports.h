// Where a job may listen on its cluster's nodes. Used by `stoker run` and `stoker jupyter`. Thread-safe: no
// state.
#pragma once

#include <optional>

#include "job/job.h"
#include "rank/plan.h"

namespace stoker::launch {

/// The ports that the job's site lets jobs listen on; nothing where it does not say. `stoker`: this
/// executable.
std::optional<net::PortRange> ports_of_site(const job::Job& job, const Path& stoker);

}  // namespace stoker::launch
