// One rank's share of a step on a node-local disk (checkpoint.local), before it is copied to shared storage.
// A share is a folder with the rank's files and a record, which is written last: without a complete record
// there is no share. Used by Saver's threads and by local/recovery.h. Thread-safe: no state. Layout:
// docs/formats/checkpoint.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread.h"
#include "checkpoint/manifest.h"
#include "stoker/status.h"

namespace stoker::checkpoint {

/// Content of a share's record.
struct Share {
  Path folder;  ///< not in the record
  Rank rank;
  ReadyMarker marker;
  StepManifest head;  ///< of the step; only rank 0's has tensors, state and hyper-parameters
};

/// Folder of a share inside `local`; `repeat` as in pending_folder_name().
Path share_folder(const Path& local, Step step, std::string_view writer, std::uint64_t repeat, Rank rank);

std::string share_text(const Share& share);
/// Corrupt if the text is not exactly an output of share_text(). `folder` is left empty.
Result<Share> parse_share(std::string_view subject, std::string_view text);

/// Writes the record of the share in `share.folder` and syncs it: the share exists from here on. REQUIRES:
/// its files exist and are synced.
Status write_share_record(const Share& share);
/// not_found or corrupt if `folder` has no complete record.
Result<Share> read_share(const Path& folder);
/// Shares in `local` with a complete record, ordered by name. Empty without such a folder.
std::vector<Share> list_shares(const Path& local);

/// Copies the share's files into the pending folder `to`: every block is verified, every file synced before
/// its rename. Corrupt with the file if a block differs from what was written. Cancelled if `stop` is
/// requested between blocks.
Status copy_share_files(const Share& share, const Path& to, const StopToken& stop);

/// Removes a share, its record first, so that a partial share is not a share. Best effort: the next attempt
/// handles leftovers.
void remove_share(const Path& folder);

}  // namespace stoker::checkpoint
