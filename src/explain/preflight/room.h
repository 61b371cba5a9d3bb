// How much a person may still write somewhere: what the disk has left and what quotas leave, in bytes and in
// files. Used before a job runs. Looks; asks the filesystem's programs where only they know. Thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"
#include "explain/preflight/quota.h"

namespace stoker::explain {

struct Room {
  ByteCount bytes;
  std::optional<std::uint64_t> files;    ///< empty: the filesystem counts none
  std::string bytes_by = "on the disk";  ///< or "of your quota"
  std::string files_by = "on the disk";
  std::string quota_trouble;  ///< why a quota that may be there is not known: "mmlsquota: not found in PATH"
};

/// The lesser of both.
Room room_within(Room room, const Quota& quota);

/// For the folder, which must be there.
Result<Room> room_of(const Path& folder, Deadline deadline);

}  // namespace stoker::explain
