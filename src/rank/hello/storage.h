// What a rank sees of its node's storage: whether the paths that a job names are there and the same as where
// it was asked, and what the node's own disk has left. Used by the member of a `stoker hello`. A filesystem
// that hangs holds nobody up.
#pragma once

#include <functional>
#include <vector>

#include "base/process.h"
#include "base/time.h"
#include "rank/hello/report.h"

namespace stoker::rank::hello {

/// What is wrong with the path here: "is not there", "may not be written to by you (user 1000)", "is another
/// one than where the job was checked"; "" nothing.
std::string look_at_path(const AskedPath& asked);

/// Looks at all of them, and at SLURM_TMPDIR, TMPDIR or /tmp. `keep_going` is called now and then; what has
/// not answered by the deadline is told so.
NodeView look_at_storage(const std::vector<AskedPath>& paths, const Environment& environment,
                         Deadline deadline, const std::function<bool()>& keep_going);

}  // namespace stoker::rank::hello
