// Tar archives as datasets use them: a canonical writer (same members, same bytes, everywhere) and a bounded
// reader that survives any input and says where members lie. Used by pack, verify and everything that opens
// shards of others. Thread-compatible. Layout: docs/formats/dataset.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace stoker::formats {

constexpr std::uint64_t kTarBlock = 512;
/// Archives end in two zero blocks and are padded to whole records of this size, as POSIX tar writes them.
constexpr std::uint64_t kTarRecord = 10240;
/// Longest member name the writer takes and the reader accepts.
constexpr std::size_t kTarNameLimit = 4096;

/// A name of up to this many bytes always fits a plain header.
constexpr std::size_t kTarPlainName = 100;

/// Where bytes of an archive go. Implementations write, hash, count.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status write(std::span<const std::byte> data) = 0;
  /// The same for whoever knows the bytes' CRC-32C already, which some sinks need.
  virtual Status write_with_crc(std::span<const std::byte> data, std::uint32_t crc32c);
  /// After it, nothing that was given before need stay where it is. Most sinks never ask for that.
  virtual void settle() {}
  /// Replaces the first bytes, which were written before, with as many others: for formats that say at the
  /// start what is known at the end. Internal for sinks that cannot.
  virtual Status put_head(std::span<const std::byte> head);
};

/// Bytes that a member of `size` bytes named `name` takes in an archive: headers, data and padding.
std::uint64_t tar_member_bytes(std::string_view name, std::uint64_t size);
/// Bytes of a whole archive whose members take `member_bytes`: with its end mark and padding.
std::uint64_t tar_archive_bytes(std::uint64_t member_bytes);

/// Writes regular files as ustar: mode 0444, uid and gid 0, no owner names, mtime 0; a pax header only for a
/// name that ustar cannot hold or a size of 8 GiB and more. The order is the caller's.
class TarWriter {
 public:
  /// `sink` must outlive the writer.
  explicit TarWriter(ByteSink& sink) : sink_(sink) {}

  /// Appends one whole member; returns the offset of its data in the archive. Invalid for a name that is
  /// empty, absolute, too long, or holds a NUL byte, an empty part, "." or "..".
  Result<std::uint64_t> add(std::string_view name, std::span<const std::byte> data);
  /// The same in pieces: begin() returns the data's offset, then append() exactly `size` bytes, each piece
  /// with its CRC-32C, then end().
  Result<std::uint64_t> begin(std::string_view name, std::uint64_t size);
  Status append(std::span<const std::byte> data, std::uint32_t crc32c);
  /// Internal if fewer bytes than announced were appended.
  Status end();
  /// Writes the end mark. Nothing may be added after it.
  Status finish();
  /// Bytes written so far.
  std::uint64_t position() const { return position_; }

 private:
  Status put(std::span<const std::byte> data);
  Status pad(std::uint64_t unit);

  ByteSink& sink_;
  std::uint64_t position_ = 0;
  std::uint64_t owed_ = 0;
};

enum class TarKind { file, hard_link, symbolic_link, character_device, block_device, directory, fifo };

/// One member of an archive.
struct TarMember {
  std::string name;  ///< as stored, prefix or pax path applied
  TarKind kind = TarKind::file;
  std::uint64_t size = 0;           ///< of its data
  std::uint64_t header_offset = 0;  ///< of its first header block (a pax or long-name header counts)
  std::uint64_t data_offset = 0;
  std::string link;           ///< what a link leads to, as stored
  std::uint32_t mode = 0644;  ///< permission bits, those of setuid and the like too
  std::int64_t mtime = 0;     ///< Unix seconds
  /// Why an unpacker must not trust the name: absolute, has "..", holds a NUL or control byte, is no UTF-8.
  /// Empty for a safe one.
  std::string_view unsafe;
};

/// Why a member's name must not be trusted: empty, absolute, "..", control byte or invalid UTF-8. Empty for a
/// safe one.
std::string_view unsafe_name(std::string_view name);

/// Reads `out.size()` bytes at an offset, all or an error. Must be callable for any range inside the archive.
using ReadAt = std::function<Status(std::uint64_t offset, std::span<std::byte> out)>;

/// Walks an archive of known size. Understands ustar, pax (x and g: path, linkpath, size, mtime), GNU long
/// names (L, K) and base-256 numbers; refuses GNU and pax sparse files by name. Memory is bounded by
/// kTarNameLimit and 1 MiB of pax records, whatever the archive says. Archives put one after another are read
/// as one.
class TarReader {
 public:
  /// `subject` starts every error text: "<subject>: byte 1536: ...".
  TarReader(ReadAt read, std::uint64_t size, std::string subject)
      : read_(std::move(read)), size_(size), subject_(std::move(subject)) {}

  /// The next member; nothing at the end. Corrupt for a bad checksum, a torn header or data that reaches
  /// beyond the end; Invalid for what we do not read (sparse files, several volumes). After an error the
  /// reader stays at the end.
  Result<std::optional<TarMember>> next();
  /// Whether the end mark (two zero blocks) was seen. Without it an archive may have lost its last members.
  bool ended_cleanly() const { return ended_; }

 private:
  struct Overrides {
    std::optional<std::string> path;
    std::optional<std::string> link;
    std::optional<std::uint64_t> size;
    std::optional<std::int64_t> mtime;
  };
  Result<std::optional<TarMember>> next_member();
  Result<bool> at_end(std::span<std::byte> block);
  Status skip_end_mark();
  Status read_extension(char type, std::uint64_t size, Overrides& into);
  Status apply_pax(std::string_view records, Overrides& into);
  Result<TarMember> member(std::span<const std::byte> block, const Overrides& overrides);
  Status advance(std::uint64_t data_bytes, std::string_view name);
  Status damaged(std::string_view what) const;

  ReadAt read_;
  std::uint64_t size_;
  std::string subject_;
  std::uint64_t position_ = 0;  // of the next header
  Overrides global_;
  bool ended_ = false;
  bool done_ = false;
};

}  // namespace stoker::formats
