// What was brought somewhere, and what it takes of a disk. Values; functions without state.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace stoker::stage {

/// What was moved.
struct Moved {
  std::uint64_t files = 0;  ///< and links
  std::uint64_t bytes = 0;
  /// Of names and contents, whatever the order they were written in: two nodes with the same have the same.
  std::uint64_t fingerprint = 0;

  Moved& operator+=(const Moved& other);
};

/// One file's part of a fingerprint: its name, and length and CRC-32C of its contents (a link's target).
std::uint64_t fingerprint_of(std::string_view name, std::uint64_t bytes, std::uint32_t crc);

/// What something will take of a disk.
struct Need {
  std::uint64_t files = 0;  ///< folders and links, too: inodes
  std::uint64_t bytes = 0;
};
/// NoSpace, starting with `subject`, when the filesystem of `folder` has less for this user.
Status check_room(std::string_view subject, const Need& need, const Path& folder);

}  // namespace stoker::stage
