// Tar archives for datasets: a canonical writer (same members, same bytes, everywhere) and a bounded reader
// that survives any input and reports the offsets of members. Used by pack, verify and all readers of foreign
// shards. Thread-compatible. Layout: docs/formats/dataset.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::archive {

constexpr std::uint64_t kTarBlock = 512;
/// Archives end in two zero blocks and are padded to whole records of this size, as POSIX tar writes them.
constexpr std::uint64_t kTarRecord = 10240;
/// Longest member name that the writer and the reader accept.
constexpr std::size_t kTarNameLimit = 4096;

/// A name of up to this many bytes always fits a plain header.
constexpr std::size_t kTarShortName = 100;

/// Destination of an archive's bytes. Implementations write, hash or count.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status write(std::span<const std::byte> data) = 0;
  /// The same with the bytes' CRC-32C, which some sinks need.
  virtual Status write_with_crc(std::span<const std::byte> data, std::uint32_t crc32c);
  /// Afterwards the caller may free all bytes passed before. Most sinks copy or write them at once.
  virtual void release_inputs() {}
  /// Overwrites the first bytes with as many new ones, for formats whose header depends on the end. Internal
  /// for sinks that cannot.
  virtual Status overwrite_head(std::span<const std::byte> head);
};

/// Bytes of a member with this name and size in an archive: headers, data and padding.
std::uint64_t tar_member_bytes(std::string_view name, std::uint64_t size);
/// Bytes of a whole archive whose members take `member_bytes`, with end mark and padding.
std::uint64_t tar_archive_bytes(std::uint64_t member_bytes);

/// Writes regular files as ustar: mode 0444, uid and gid 0, no owner names, mtime 0. A pax header appears
/// only for a name that ustar cannot hold or a size of 8 GiB and more. The caller decides the order.
class TarWriter {
 public:
  /// `sink` must outlive the writer.
  explicit TarWriter(ByteSink& sink) : sink_(sink) {}

  /// Appends one whole member and returns the offset of its data in the archive. Invalid for a name that is
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
  std::uint64_t remaining_ = 0;
};

enum class TarKind { file, hard_link, symbolic_link, character_device, block_device, directory, fifo };

/// One member of an archive.
struct TarMember {
  std::string name;  ///< as stored, prefix or pax path applied
  TarKind kind = TarKind::file;
  std::uint64_t size = 0;           ///< of its data
  std::uint64_t header_offset = 0;  ///< of its first header block (a pax or long-name header counts)
  std::uint64_t data_offset = 0;
  std::string link;           ///< target of a link, as stored
  std::uint32_t mode = 0644;  ///< permission bits, with setuid and the like
  std::int64_t mtime = 0;     ///< Unix seconds
  /// Why an unpacker must not trust the name: absolute, has "..", holds a NUL or control byte, is not UTF-8.
  /// Empty for a safe name.
  std::string_view unsafe;
};

/// Why a member's name must not be trusted: empty, absolute, "..", control byte or invalid UTF-8. Empty for a
/// safe name.
std::string_view unsafe_name(std::string_view name);

/// Reads exactly `out.size()` bytes at an offset, or fails. Must be callable for any range inside the
/// archive.
using ReadAt = std::function<Status(std::uint64_t offset, std::span<std::byte> out)>;

/// Walks an archive of known size. Supports ustar, pax (x and g: path, linkpath, size, mtime), GNU long names
/// (L, K), base-256 numbers and concatenated archives. Rejects GNU and pax sparse files by name. Memory is
/// bounded by kTarNameLimit and 1 MiB of pax records for any input.
class TarReader {
 public:
  /// `subject` starts every error text: "<subject>: byte 1536: ...".
  TarReader(ReadAt read, std::uint64_t size, std::string subject)
      : read_(std::move(read)), size_(size), subject_(std::move(subject)) {}

  /// The next member; nullopt at the end. Corrupt for a bad checksum, a truncated header or data beyond the
  /// end; Invalid for unsupported features (sparse files, several volumes). After an error the reader stays
  /// at the end.
  Result<std::optional<TarMember>> next();
  /// Whether the end mark (two zero blocks) was seen. Without it an archive may have lost its last members.
  bool has_end_mark() const { return ended_; }
  /// Offset of the first single zero block with a member behind it. The reader continues, as in concatenated
  /// archives, but GNU tar and Python stop at that block unless they ignore zeros.
  std::optional<std::uint64_t> lone_zero_block() const { return lone_zero_block_; }

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
  std::optional<std::uint64_t> lone_zero_block_;
  bool ended_ = false;
  bool done_ = false;
};

}  // namespace stoker::archive
