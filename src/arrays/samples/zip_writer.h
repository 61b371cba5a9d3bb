// Writes zip archives of uncompressed members, front to back and canonically, without times and owners. The
// first member may come in pieces; its header is completed at the end. Used only inside this folder.
// Thread-compatible. Layout: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/tar.h"
#include "stoker/status.h"

namespace stoker::arrays {

class StoredZipWriter {
 public:
  /// `first` is the first member's name. `sink` must outlive it, and support overwrite_head().
  StoredZipWriter(archive::ByteSink& sink, std::string first);

  /// The offset of the first member's bytes.
  std::uint64_t first_begin() const;
  Status begin_first();
  Status append(std::span<const std::byte> piece, std::uint32_t crc32c);
  Status append(std::string_view piece);
  /// A whole member. REQUIRES: the first one is complete.
  Status add(std::string name, std::span<const std::byte> bytes);
  /// Writes the directory, and the first member's header.
  Status finish();

 private:
  struct Member {
    std::string name;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint32_t crc32 = 0;
  };
  static std::string local_header(const Member& member, bool is_zip64);
  Status put(std::string_view bytes);

  archive::ByteSink& sink_;
  std::uint64_t at_ = 0;
  std::vector<Member> members_;
};

}  // namespace stoker::arrays
