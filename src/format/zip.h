// Reads zip archives where they lie: the directory at the end, then members by number, stored or deflated.
// Bounded, whatever the archive says: members may not overlap (a file of 42 kB could else stand for
// petabytes), and none may claim more than its compressed bytes can give. Used by pack. Thread-safe once
// opened. https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT describes the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/tar.h"

namespace stoker::formats {

/// One member of an archive.
struct ZipMember {
  std::string name;  ///< as stored; a folder's ends in '/'
  bool is_symbolic_link = false;
  bool is_encrypted = false;
  std::uint32_t mode = 0;    ///< permission bits; 0 where it was not made on Unix
  std::uint16_t method = 0;  ///< 0 stored, 8 deflated
  std::uint32_t crc32 = 0;
  std::uint64_t stored_bytes = 0;  ///< in the archive
  std::uint64_t bytes = 0;         ///< unpacked
  std::uint64_t header_offset = 0;
  /// Why an unpacker must not trust the name, as in TarMember.
  std::string_view unsafe;

  bool is_folder() const { return name.ends_with('/'); }
  bool is_readable() const { return !is_encrypted && (method == 0 || method == 8); }
};

class ZipReader {
 public:
  /// Reads the directory. Corrupt or Invalid, starting with `subject`, for anything that does not hold.
  static Result<ZipReader> open(ReadAt read, std::uint64_t size, std::string subject);

  /// In the order of the directory.
  const std::vector<ZipMember>& members() const { return members_; }
  /// The whole member. Corrupt if its bytes are not those of its CRC-32. REQUIRES: is_readable(), and
  /// `out.size()` is its `bytes`.
  Status read(const ZipMember& member, std::span<std::byte> out) const;
  /// The same piece by piece, of members of any size: `take` gets each, and never more than `bytes` of it.
  /// The CRC-32 is compared at the end. REQUIRES: is_readable().
  using Take = std::function<Status(std::span<const std::byte>)>;
  Status unpack(const ZipMember& member, const Take& take) const;
  /// Where a stored member's bytes begin.
  Result<std::uint64_t> data_offset(const ZipMember& member) const;

 private:
  struct Directory {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t members = 0;
  };
  Result<Directory> find_directory() const;
  Result<Directory> wide_directory(std::uint64_t end_offset) const;
  Status read_directory(const Directory& directory);
  Status check_places(std::uint64_t end) const;
  Status damaged(std::string_view what) const { return corrupt("{}: {}", subject_, what); }

  ReadAt read_;
  std::uint64_t size_ = 0;
  std::string subject_;
  std::vector<ZipMember> members_;
};

}  // namespace stoker::formats
