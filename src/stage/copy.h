// Copies files and folders recursively with several threads to a node's local disk before a run. Used by
// `stoker stage`. Thread-safe: no state.
#pragma once

#include "stage/transfer_stats.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::stage {

/// Copies `source` to `folder`/<its name>, which must not exist and becomes visible only once it is complete.
/// Links are kept, symbolic and hard ones; devices and pipes are skipped. NotFound if the source does not
/// exist, NoSpace before anything is written, Unavailable if a file changes during the copy.
Result<TransferStats> copy_in(const Path& source, const Path& folder, Progress& progress);

/// "data" for "data/": what is copied has the name of the last part.
Path without_slash(const Path& path);

}  // namespace stoker::stage
