// Free space for a user: the smaller of disk and quota, in bytes and inodes. Queries quota programs where
// necessary. Read-only. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "preflight/quota.h"
#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::preflight {

struct FreeSpace {
  ByteCount bytes;
  std::optional<std::uint64_t> files;            ///< empty: the filesystem has no inode limit
  std::string bytes_limited_by = "on the disk";  ///< or "of your quota"
  std::string files_limited_by = "on the disk";
  std::string quota_error;  ///< why a quota is unknown: "mmlsquota: not found in PATH"
};

/// The smaller of free space and quota.
FreeSpace within_quota(FreeSpace space, const Quota& quota);

/// REQUIRES: the folder exists.
Result<FreeSpace> free_space_of(const Path& folder, Deadline deadline);

}  // namespace stoker::preflight
