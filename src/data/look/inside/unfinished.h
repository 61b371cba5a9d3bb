// What keeps a folder from being a dataset when packing into it has begun. Used by `stoker data info`. Blocks
// on the storage. Thread-safe: no state.
#pragma once

#include "base/file.h"
#include "base/status.h"

namespace stoker::data {

/// `why` reading its manifest failed; or, where every shard of a packing in `folder` is finished and nothing
/// is left to do but `stoker data merge`, that. Takes no lock: parts may begin meanwhile.
Status why_no_dataset(const Path& folder, Status why);

}  // namespace stoker::data
