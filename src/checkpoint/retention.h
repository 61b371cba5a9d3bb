// Removes checkpoints that are no longer wanted, and what dead writers left. Used by rank 0's Saver.
// Thread-safe: no state; two processes doing it at once do no harm.
#pragma once

#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "base/time.h"

namespace stoker::checkpoint {

/// Removes pending folders whose writer is dead or whose lease is over, and removals that were interrupted.
/// Returns what was removed; what cannot be removed is left for the next time.
std::vector<Path> remove_abandoned(const Path& directory, WallTime now);

/// Keeps the newest `keep` valid steps (structure, not bytes) and removes the older ones, `reading` excepted.
/// Steps that are not valid do not count and go only when they are older than all that are kept. `keep` 0
/// keeps all. A step vanishes at once: it is renamed before its files go.
Result<std::vector<Path>> keep_newest(const Path& directory, int keep, const Path& reading);

/// Takes one step away as keep_newest does.
Status remove_step(const Path& folder);

}  // namespace stoker::checkpoint
