// One rank's share of a step on its node's own disk (checkpoint.local), on its way to shared storage. A share
// is a folder with the rank's files and a record, which is written last: without a whole record there is no
// share. Used by Saver's threads and by local/meeting.h. Thread-safe: no state. Layout:
// docs/formats/checkpoint.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "checkpoint/manifest.h"

namespace stoker::checkpoint {

/// The content of a share's record.
struct Share {
  Path folder;  ///< where it lies; not in the record
  Rank rank;
  ReadyMarker marker;
  Manifest head;  ///< the step's; only rank 0's holds tensors, state and hyper-parameters
};

/// The folder of a share inside `local`; `repeat` as in pending_folder_name().
Path share_folder(const Path& local, Step step, std::string_view writer, std::uint64_t repeat, Rank rank);

std::string share_text(const Share& share);
/// Corrupt when the text is not what share_text() wrote, to the bit. `folder` is left empty.
Result<Share> parse_share(std::string_view subject, std::string_view text);

/// Writes the record of the share in `share.folder` and syncs it: the share exists from here on. REQUIRES:
/// its files are there, and synced.
Status write_share_record(const Share& share);
/// not_found or corrupt when `folder` holds no whole record.
Result<Share> read_share(const Path& folder);
/// The shares in `local` whose record is whole, in the order of their names. Empty when there is no such
/// folder.
std::vector<Share> list_shares(const Path& local);

/// Copies the share's files into the pending folder `to`: every block is checked on the way, every file
/// synced before it gets its name. Corrupt naming the file when a block is not as it was written. Cancelled
/// when `stop` asks for it between blocks.
Status copy_share_files(const Share& share, const Path& to, const StopToken& stop);

/// Removes a share, its record first, so that half of one is none. Best effort: what stays is looked at again
/// by the next attempt.
void remove_share(const Path& folder);

}  // namespace stoker::checkpoint
