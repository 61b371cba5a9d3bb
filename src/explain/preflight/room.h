// How much a person may still write somewhere: what the disk has left and what quotas leave, in bytes and in
// files. Used before a job runs. Looks; asks `lfs` and `quota` where only they know. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"

namespace stoker::explain {

/// What somebody has used of what he may use. Empty: no limit.
struct Quota {
  ByteCount used;
  std::optional<ByteCount> most;
  std::uint64_t files = 0;
  std::optional<std::uint64_t> most_files;

  friend bool operator==(const Quota&, const Quota&) = default;
};

/// Reads what `lfs quota -q` and `quota -w -p` print: the first row of a filesystem. The lower of soft and
/// hard limit counts; nothing without such a row.
std::optional<Quota> parse_quota(std::string_view text);

struct Room {
  ByteCount bytes;
  std::optional<std::uint64_t> files;    ///< empty: the filesystem counts none
  std::string bytes_by = "on the disk";  ///< or "of your quota"
  std::string files_by = "on the disk";
};

/// The lesser of both.
Room room_within(Room room, const Quota& quota);

/// For the folder, which must be there.
Result<Room> room_of(const Path& folder, Deadline deadline);

}  // namespace stoker::explain
