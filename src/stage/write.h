// Writes the contents of an archive or a folder into a folder with several threads. Used by unpack and copy.
// Thread-safe: no state.
#pragma once

#include <vector>

#include "stage/archive.h"
#include "stage/listing.h"
#include "stage/transfer_stats.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::stage {

/// Writes `entries` of `from` into `folder`, which must exist and be empty, and is usable only after success.
/// `threads`: 0: the number of cores, at most 16. Owners and setuid bits are not preserved.
Result<TransferStats> write_entries(const EntrySource& from, const std::vector<ArchiveEntry>& entries,
                                    const Path& folder, int threads, Progress& progress);

/// The parts of write_entries() for a caller that writes the files. First all folders, parents too.
Status make_folders(const std::vector<ArchiveEntry>& entries, const Path& folder);
/// Then the mode and the time of each complete file.
Status finish_file(const File& file, const ArchiveEntry& entry);
/// Then the links, which are counted, and the modes and times of folders.
Result<TransferStats> finish_tree(const std::vector<ArchiveEntry>& entries, const Path& folder);

/// The disk space that they need.
SpaceNeeded space_needed(const std::vector<ArchiveEntry>& entries);

}  // namespace stoker::stage
