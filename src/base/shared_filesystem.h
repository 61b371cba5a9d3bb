// Filesystems that nodes share, by their type. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker {

/// "NFS", "Lustre", "FUSE", ..., or "" for a filesystem of one machine and for an unknown one. `type`: f_type
/// of statfs(2). FUSE may be shared or not (sshfs, s3fs).
std::string_view shared_filesystem(std::uint64_t type);
/// The same for the filesystem of an existing path.
Result<std::string_view> shared_filesystem_at(const Path& path);

}  // namespace stoker
