// Statistics of a transfer, and required disk space. Values; functions without state.
#pragma once

#include <cstdint>
#include <string_view>

#include "stoker/status.h"

namespace stoker::stage {

/// What was transferred.
struct TransferStats {
  std::uint64_t files = 0;  ///< including links
  std::uint64_t bytes = 0;
  std::uint64_t received_bytes = 0;  ///< of them from other nodes, not from the source
  std::uint64_t cached_bytes = 0;    ///< of datasets that were on the node already; not in `bytes`
  /// Fingerprint of names and contents, independent of the order of writes: two nodes with the same files
  /// have the same value.
  std::uint64_t fingerprint = 0;

  TransferStats& operator+=(const TransferStats& other);
};

/// One file's contribution to a fingerprint: its name, and length and CRC-32C of its contents (or of a link's
/// target).
std::uint64_t fingerprint_of(std::string_view name, std::uint64_t bytes, std::uint32_t crc);

/// Required disk space.
struct SpaceNeeded {
  std::uint64_t files = 0;  ///< including folders and links: inodes
  std::uint64_t bytes = 0;
};
/// NoSpace, prefixed with `subject`, if the filesystem of `folder` has less space for this user.
Status check_free_space(std::string_view subject, const SpaceNeeded& need, const Path& folder);

}  // namespace stoker::stage
