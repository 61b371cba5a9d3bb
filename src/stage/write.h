// Writes what an archive or a folder holds into a folder, by several threads. Used by unpack and copy.
// Thread-safe: no state.
#pragma once

#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "stage/archive.h"
#include "stage/listing.h"
#include "stage/moved.h"

namespace stoker::stage {

/// Writes `entries` of `from` into `folder`, which must be there and empty, and is only of use when all went
/// well. `threads`: 0: as many as cores, at most 16. Owners are not kept, nor bits of setuid.
Result<Moved> write_entries(const Archive& from, const std::vector<Entry>& entries, const Path& folder,
                            int threads, Progress& progress);

/// What they take of a disk.
Need need_of(const std::vector<Entry>& entries);

}  // namespace stoker::stage
