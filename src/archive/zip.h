// Reads zip archives in place: the directory at the end, then members by number, stored or deflated. Memory
// is bounded for any input: members may not overlap (a file of 42 kB could otherwise expand to petabytes),
// and no member may claim more than its compressed bytes can produce. Other bytes may precede the archive, as
// in a program that unpacks itself. Used by pack. Thread-safe once opened.
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT describes the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/tar.h"
#include "base/file.h"
#include "stoker/status.h"

namespace stoker::archive {

/// One member of an archive.
struct ZipMember {
  std::string name;  ///< as stored, or from Info-ZIP's Unicode Path field; a folder's name ends in '/'
  bool is_symbolic_link = false;
  bool is_encrypted = false;
  std::uint32_t mode = 0;    ///< permission bits; 0 if the archive was not made on Unix
  std::uint16_t method = 0;  ///< 0 stored, 8 deflated
  std::uint32_t crc32 = 0;
  std::uint64_t stored_bytes = 0;   ///< in the archive
  std::uint64_t bytes = 0;          ///< decompressed
  std::uint64_t header_offset = 0;  ///< in the file
  /// Why an unpacker must not trust the name, as in TarMember.
  std::string_view unsafe;

  bool is_folder() const { return name.ends_with('/'); }
  bool is_readable() const { return !is_encrypted && (method == 0 || method == 8); }
};

/// Whether the last 64 KiB hold the end record of a zip archive, which may begin anywhere in the file.
Result<bool> ends_as_zip(const ReadAt& read, std::uint64_t size);

class ZipReader {
 public:
  /// Reads the directory. Corrupt or Invalid, starting with `subject`, for an archive that is inconsistent.
  static Result<ZipReader> open(ReadAt read, std::uint64_t size, std::string subject);

  /// In the order of the directory.
  const std::vector<ZipMember>& members() const { return members_; }
  /// Reads the whole member. Corrupt if its CRC-32 does not match. REQUIRES: is_readable(), and `out.size()`
  /// is its `bytes`.
  Status read(const ZipMember& member, std::span<std::byte> out) const;
  /// Reads members of any size in pieces: calls `on_piece` for each, with at most `bytes` in total. Verifies
  /// the CRC-32 at the end. REQUIRES: is_readable().
  using OnPiece = std::function<Status(std::span<const std::byte>)>;
  Status unpack(const ZipMember& member, const OnPiece& on_piece) const;
  /// Offset of a stored member's bytes.
  Result<std::uint64_t> data_offset(const ZipMember& member) const;

 private:
  struct Directory {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t members = 0;
    std::uint64_t end = 0;     // where the end records begin
    std::uint64_t prefix = 0;  // bytes before the archive
    bool is_volume = false;    // one of several
  };
  Result<Directory> find_directory() const;
  Result<std::optional<Directory>> zip64_directory(std::uint64_t end_offset) const;
  Status skip_prefix(Directory& directory) const;
  Status read_directory(const Directory& directory);
  Status check_layout(std::uint64_t end) const;
  Status damaged(std::string_view what) const { return corrupt("{}: {}", subject_, what); }

  ReadAt read_;
  std::uint64_t size_ = 0;
  std::string subject_;
  std::vector<ZipMember> members_;
};

/// An archive with its open file.
struct ZipFile {
  std::shared_ptr<const File> file;  ///< shared with `zip`
  ZipReader zip;
};
/// Errors as ZipReader::open(), and as File::open_read().
Result<ZipFile> open_zip_file(const Path& path);

}  // namespace stoker::archive
