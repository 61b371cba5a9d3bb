// A rank's view of its node's storage: whether the paths of a job exist and are the same as on the checking
// node, and the free space on the local disk. Used by the workers of a `stoker hello`. A hanging filesystem
// does not block.
#pragma once

#include <functional>
#include <vector>

#include "base/process.h"
#include "netcheck/report.h"
#include "stoker/time.h"

namespace stoker::netcheck {

/// The problem with the path on this node: "does not exist", "is not writable for you (user 1000)", "differs
/// from the path on the checking node"; "" without one.
std::string check_path(const CheckedPath& asked);

/// Checks all paths, and SLURM_TMPDIR, TMPDIR or /tmp. Calls `keep_going` regularly. Paths that do not answer
/// by the deadline get a problem.
NodeView check_storage(const std::vector<CheckedPath>& paths, const Environment& environment,
                       Deadline deadline, const std::function<bool()>& keep_going);

}  // namespace stoker::netcheck
