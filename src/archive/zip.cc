#include "archive/zip.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "archive/decompress.h"
#include "base/hashes/crc32.h"
#include "codec/filters/filters.h"
#include "codec/load.h"

namespace stoker::archive {

static_assert(std::endian::native == std::endian::little, "zip numbers are read in place");

namespace {

constexpr std::uint32_t kEndMagic = 0x06054b50;
constexpr std::uint32_t kZip64EndMagic = 0x06064b50;
constexpr std::uint32_t kZip64LocatorMagic = 0x07064b50;
constexpr std::uint32_t kMemberMagic = 0x02014b50;
constexpr std::uint32_t kLocalMagic = 0x04034b50;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kZip64EndBytes = 56;
constexpr std::size_t kZip64LocatorBytes = 20;
constexpr std::size_t kMemberBytes = 46;
constexpr std::size_t kLocalBytes = 30;
constexpr std::uint64_t kMaxComment = 0xFFFF;
constexpr std::uint64_t kDirectoryLimit = std::uint64_t{2} << 30;
// DEFLATE codes at most 258 bytes in about two bits: a ratio above 1032 to 1 is impossible.
constexpr std::uint64_t kMaxInflation = 1032;
constexpr std::uint32_t kZip64Marker = 0xFFFFFFFF;
constexpr std::uint16_t kZip64ShortMarker = 0xFFFF;
constexpr std::uint64_t kLargestOffset = std::numeric_limits<std::uint64_t>::max();

std::string_view text_at(std::span<const std::byte> bytes, std::size_t offset, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes.data()) + offset, size};
}

// The content of the extra field `id`.
std::optional<std::span<const std::byte>> extra_field(std::span<const std::byte> extra, std::uint16_t id) {
  while (extra.size() >= 4) {
    const auto size = codec::load<std::uint16_t>(extra, 2);
    if (size > extra.size() - 4) return std::nullopt;  // private fields of other tools may be malformed
    if (codec::load<std::uint16_t>(extra, 0) == id) return extra.subspan(4, size);
    extra = extra.subspan(4u + size);
  }
  return std::nullopt;
}

// Sizes and offsets that do not fit 32 bits are in extra field 1, in this order, only for fields of
// 0xFFFFFFFF.
bool apply_zip64(std::span<const std::byte> extra, ZipMember& member) {
  auto values = extra_field(extra, 1);
  if (!values) return true;
  for (std::uint64_t* field : {&member.bytes, &member.stored_bytes, &member.header_offset}) {
    if (*field != kZip64Marker) continue;
    if (values->size() < 8) return false;
    *field = codec::load<std::uint64_t>(*values, 0);
    values = values->subspan(8);
  }
  return true;
}

// Info-ZIP's Unicode Path: version 1, the CRC-32 of the name that it replaces, a name in UTF-8. A tool that
// renamed the member without this field left another CRC-32.
void apply_unicode_path(std::span<const std::byte> extra, ZipMember& member) {
  constexpr std::uint16_t kUnicodePath = 0x7075;
  constexpr std::size_t kHead = 5;
  const auto field = extra_field(extra, kUnicodePath);
  if (!field || field->size() <= kHead || field->front() != std::byte{1}) return;
  if (codec::load<std::uint32_t>(*field, 1) != crc32(std::as_bytes(std::span(member.name)))) return;
  member.name = text_at(*field, kHead, field->size() - kHead);
}

// An entry of the directory, of a whole header and these bytes of name and extra fields. Corrupt for a
// truncated zip64 field.
Result<ZipMember> member_of(std::span<const std::byte> entry, std::size_t name, std::size_t extra) {
  constexpr std::uint16_t kHasUtf8Name = 1u << 11;
  ZipMember member;
  member.name = text_at(entry, kMemberBytes, name);
  const auto flags = codec::load<std::uint16_t>(entry, 8);
  const auto made_by = static_cast<std::uint8_t>(entry[5]);
  const auto mode = codec::load<std::uint32_t>(entry, 38) >> 16;
  member.is_symbolic_link = made_by == 3 && (mode & 0170000) == 0120000;  // made on Unix, S_IFLNK
  if (made_by == 3) member.mode = mode & 07777;
  member.is_encrypted = (flags & 1) != 0;
  member.method = codec::load<std::uint16_t>(entry, 10);
  member.crc32 = codec::load<std::uint32_t>(entry, 16);
  member.stored_bytes = codec::load<std::uint32_t>(entry, 20);
  member.bytes = codec::load<std::uint32_t>(entry, 24);
  member.header_offset = codec::load<std::uint32_t>(entry, 42);
  const auto extras = entry.subspan(kMemberBytes + name, extra);
  if (!apply_zip64(extras, member)) {
    return corrupt("member '{}': its zip64 field is truncated", printable(member.name.substr(0, 80)));
  }
  if ((flags & kHasUtf8Name) == 0) apply_unicode_path(extras, member);
  member.unsafe = unsafe_name(member.name);
  return member;
}

struct EndRecord {
  std::uint64_t offset = 0;
  std::array<std::byte, kEndBytes> bytes{};
};

// The end record is followed only by a comment of up to 64 KiB.
Result<std::optional<EndRecord>> find_end_record(const ReadAt& read, std::uint64_t size) {
  const std::uint64_t window = std::min<std::uint64_t>(size, kEndBytes + kMaxComment);
  if (window < kEndBytes) return std::optional<EndRecord>();
  std::vector<std::byte> tail(window);
  STOKER_RETURN_IF_ERROR(read(size - window, tail));
  for (std::size_t at = tail.size() - kEndBytes + 1; at-- > 0;) {
    if (codec::load<std::uint32_t>(tail, at) != kEndMagic) continue;
    if (codec::load<std::uint16_t>(tail, at + 20) > tail.size() - at - kEndBytes) continue;
    EndRecord end{.offset = size - window + at};
    std::copy_n(tail.begin() + static_cast<std::ptrdiff_t>(at), kEndBytes, end.bytes.begin());
    return std::optional(end);
  }
  return std::optional<EndRecord>();
}

// Whether the zip64 record has the number of a field. Some writers mark all fields, also the volumes.
bool needs_zip64(std::span<const std::byte> end) {
  for (const std::size_t at : {4u, 6u, 8u, 10u}) {
    if (codec::load<std::uint16_t>(end, at) == kZip64ShortMarker) return true;
  }
  return codec::load<std::uint32_t>(end, 12) == kZip64Marker ||
         codec::load<std::uint32_t>(end, 16) == kZip64Marker;
}

// Presents a member's DEFLATE stream as a gzip file by adding header and trailer.
class GzipStream {
 public:
  GzipStream(ReadAt read, std::uint64_t begin, const ZipMember& member)
      : read_(std::move(read)), begin_(begin), stored_(member.stored_bytes) {
    const auto size = static_cast<std::uint32_t>(member.bytes);  // as gzip has it: modulo 2^32
    std::memcpy(end_.data(), &member.crc32, sizeof member.crc32);
    std::memcpy(end_.data() + sizeof member.crc32, &size, sizeof size);
  }

  Result<std::size_t> next(std::span<std::byte> out) {
    std::size_t given = copy_part(kHeader, 0, out);
    const std::uint64_t first = kHeader.size();
    if (given < out.size() && at_ < first + stored_) {
      const auto part =
          out.subspan(given).first(std::min<std::uint64_t>(out.size() - given, first + stored_ - at_));
      STOKER_RETURN_IF_ERROR(read_(begin_ + at_ - first, part));
      at_ += part.size();
      given += part.size();
    }
    return given + copy_part(end_, first + stored_, out.subspan(given));
  }

 private:
  std::size_t copy_part(std::span<const std::byte> part, std::uint64_t begins, std::span<std::byte> out) {
    if (at_ < begins || at_ - begins >= part.size()) return 0;
    const auto left = part.subspan(at_ - begins);
    const std::size_t count = std::min(left.size(), out.size());
    std::copy_n(left.begin(), count, out.begin());
    at_ += count;
    return count;
  }

  static constexpr std::array<std::byte, 10> kHeader = {std::byte{0x1F}, std::byte{0x8B}, std::byte{8}};
  const ReadAt read_;
  const std::uint64_t begin_;
  const std::uint64_t stored_;
  std::array<std::byte, 8> end_{};
  std::uint64_t at_ = 0;
};

}  // namespace

Result<bool> ends_as_zip(const ReadAt& read, std::uint64_t size) {
  STOKER_ASSIGN_OR_RETURN(end, find_end_record(read, size));
  return end.has_value();
}

Result<ZipReader> ZipReader::open(ReadAt read, std::uint64_t size, std::string subject) {
  ZipReader zip;
  zip.read_ = std::move(read);
  zip.size_ = size;
  zip.subject_ = std::move(subject);
  STOKER_ASSIGN_OR_RETURN(directory, zip.find_directory());
  STOKER_RETURN_IF_ERROR(zip.read_directory(directory));
  STOKER_RETURN_IF_ERROR(zip.check_layout(directory.offset));
  return zip;
}

Result<ZipReader::Directory> ZipReader::find_directory() const {
  if (size_ < kEndBytes) return damaged("too short for a zip archive");
  STOKER_ASSIGN_OR_RETURN(end, find_end_record(read_, size_));
  if (!end) return damaged("has no directory at its end: truncated, or not a zip archive");
  Directory directory{.offset = codec::load<std::uint32_t>(end->bytes, 16),
                      .bytes = codec::load<std::uint32_t>(end->bytes, 12),
                      .members = codec::load<std::uint16_t>(end->bytes, 10),
                      .end = end->offset};
  directory.is_volume =
      codec::load<std::uint16_t>(end->bytes, 4) != 0 || codec::load<std::uint16_t>(end->bytes, 6) != 0;
  const bool is_wide = needs_zip64(end->bytes);
  const Result<std::optional<Directory>> wide = zip64_directory(end->offset);
  if (is_wide && !wide.ok()) return wide.error();
  if (wide.ok() && wide->has_value()) {
    if (is_wide) directory = **wide;
    directory.end = (*wide)->end;
  }
  if (directory.is_volume) {
    return invalid("{}: is one of several volumes, which is not supported", subject_);
  }
  if (directory.bytes > directory.end || directory.offset > directory.end - directory.bytes) {
    return damaged("its directory reaches beyond the end");
  }
  if (directory.bytes > kDirectoryLimit) {
    return invalid("{}: its directory has {} bytes (at most {})", subject_, directory.bytes, kDirectoryLimit);
  }
  if (directory.members > directory.bytes / kMemberBytes) {
    return damaged(
        format("claims {} members in a directory of {} bytes", directory.members, directory.bytes));
  }
  STOKER_RETURN_IF_ERROR(skip_prefix(directory));
  return directory;
}

// The record in front of its locator, or at its offset if it is longer than usual. Nothing without a locator:
// a 32-bit record may happen to have such numbers.
Result<std::optional<ZipReader::Directory>> ZipReader::zip64_directory(std::uint64_t end_offset) const {
  if (end_offset < kZip64LocatorBytes) return std::optional<Directory>();
  const std::uint64_t locator_offset = end_offset - kZip64LocatorBytes;
  std::byte locator[kZip64LocatorBytes];
  STOKER_RETURN_IF_ERROR(read_(locator_offset, locator));
  if (codec::load<std::uint32_t>(locator, 0) != kZip64LocatorMagic) return std::optional<Directory>();
  if (locator_offset < kZip64EndBytes) return damaged("its zip64 record is not at its offset");
  const std::uint64_t last = locator_offset - kZip64EndBytes;
  for (const std::uint64_t at : {last, codec::load<std::uint64_t>(locator, 8)}) {
    if (at > last) continue;
    std::byte record[kZip64EndBytes];
    STOKER_RETURN_IF_ERROR(read_(at, record));
    if (codec::load<std::uint32_t>(record, 0) != kZip64EndMagic) continue;
    Directory directory{.offset = codec::load<std::uint64_t>(record, 48),
                        .bytes = codec::load<std::uint64_t>(record, 40),
                        .members = codec::load<std::uint64_t>(record, 32),
                        .end = at};
    directory.is_volume =
        codec::load<std::uint32_t>(locator, 4) != 0 || codec::load<std::uint32_t>(locator, 16) > 1 ||
        codec::load<std::uint32_t>(record, 16) != 0 || codec::load<std::uint32_t>(record, 20) != 0;
    return std::optional(directory);
  }
  return damaged("its zip64 record is not at its offset");
}

// Offsets count from the archive's first byte. The directory's real position shows how many bytes precede it,
// unless other data is between the directory and its end record. So the first member must be there, too.
// REQUIRES: offset and size of the directory fit before the end record.
Status ZipReader::skip_prefix(Directory& directory) const {
  const std::uint64_t prefix = directory.end - directory.bytes - directory.offset;
  if (prefix == 0 || directory.members == 0) return {};
  std::byte entry[kMemberBytes];
  STOKER_RETURN_IF_ERROR(read_(directory.offset + prefix, entry));
  if (codec::load<std::uint32_t>(entry, 0) != kMemberMagic) return {};
  const auto first = codec::load<std::uint32_t>(entry, 42);
  if (first != kZip64Marker) {
    std::byte magic[4];
    if (first >= directory.offset || directory.offset - first < kLocalBytes) return {};
    STOKER_RETURN_IF_ERROR(read_(first + prefix, magic));
    if (codec::load<std::uint32_t>(magic, 0) != kLocalMagic) return {};
  }
  directory.offset += prefix;
  directory.prefix = prefix;
  return {};
}

Status ZipReader::read_directory(const Directory& directory) {
  std::vector<std::byte> bytes(directory.bytes);
  STOKER_RETURN_IF_ERROR(read_(directory.offset, bytes));
  std::span<const std::byte> left = bytes;
  members_.reserve(directory.members);
  for (std::uint64_t i = 0; i < directory.members; ++i) {
    if (left.size() < kMemberBytes || codec::load<std::uint32_t>(left, 0) != kMemberMagic) {
      return damaged(format("its directory ends at member {} of {}", i + 1, directory.members));
    }
    const std::size_t name = codec::load<std::uint16_t>(left, 28);
    const std::size_t extra = codec::load<std::uint16_t>(left, 30);
    const std::size_t comment = codec::load<std::uint16_t>(left, 32);
    if (name + extra + comment > left.size() - kMemberBytes) {
      return damaged(format("its directory ends at member {} of {}", i + 1, directory.members));
    }
    Result<ZipMember> member = member_of(left, name, extra);
    if (!member.ok()) return damaged(member.error().message());
    // An offset beyond the end stays there.
    member->header_offset += std::min(directory.prefix, kLargestOffset - member->header_offset);
    members_.push_back(std::move(*member));
    left = left.subspan(kMemberBytes + name + extra + comment);
  }
  return {};
}

// Members must be disjoint, before the directory, and not larger than their compressed size allows.
Status ZipReader::check_layout(std::uint64_t end) const {
  std::vector<const ZipMember*> by_offset;
  by_offset.reserve(members_.size());
  for (const ZipMember& member : members_) {
    const auto named = [&](std::string_view what) {
      return damaged(format("member '{}': {}", printable(member.name.substr(0, 80)), what));
    };
    if (member.header_offset > end || end - member.header_offset < kLocalBytes ||
        member.stored_bytes > end - member.header_offset - kLocalBytes) {
      return named("reaches beyond the end");
    }
    if (member.method == 0 && !member.is_encrypted && member.bytes != member.stored_bytes) {
      return named(format("is stored in {} bytes but has {}", member.stored_bytes, member.bytes));
    }
    if (member.method == 8 && member.bytes / kMaxInflation > member.stored_bytes) {
      return named(format("claims {} bytes of {} compressed ones, more than 1032 to 1", member.bytes,
                          member.stored_bytes));
    }
    by_offset.push_back(&member);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const ZipMember* a, const ZipMember* b) { return a->header_offset < b->header_offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const ZipMember& before = *by_offset[i - 1];
    if (before.header_offset + kLocalBytes + before.stored_bytes > by_offset[i]->header_offset) {
      return damaged(format("members '{}' and '{}' overlap", printable(before.name.substr(0, 80)),
                            printable(by_offset[i]->name.substr(0, 80))));
    }
  }
  return {};
}

Result<std::uint64_t> ZipReader::data_offset(const ZipMember& member) const {
  const std::string name = printable(member.name.substr(0, 80));
  std::byte local[kLocalBytes];
  STOKER_RETURN_IF_ERROR(read_(member.header_offset, local));
  if (codec::load<std::uint32_t>(local, 0) != kLocalMagic) {
    return damaged(format("member '{}': is not at the offset in the directory", name));
  }
  const std::uint64_t begin = member.header_offset + kLocalBytes + codec::load<std::uint16_t>(local, 26) +
                              codec::load<std::uint16_t>(local, 28);
  if (begin > size_ || member.stored_bytes > size_ - begin) {
    return damaged(format("member '{}': reaches beyond the end", name));
  }
  return begin;
}

Status ZipReader::read(const ZipMember& member, std::span<std::byte> out) const {
  STOKER_CHECK(member.is_readable() && out.size() == member.bytes);
  STOKER_ASSIGN_OR_RETURN(begin, data_offset(member));
  const std::string name = printable(member.name.substr(0, 80));
  if (member.method == 0) {
    STOKER_RETURN_IF_ERROR(read_(begin, out));
  } else if (member.bytes > 0) {
    if (member.stored_bytes > kZip64Marker || member.bytes > kZip64Marker) {
      return invalid("{}: member '{}': compressed members may have up to 4 GiB", subject_, name);
    }
    std::vector<std::byte> packed(member.stored_bytes);
    STOKER_RETURN_IF_ERROR(read_(begin, packed));
    if (!inflate(codec::Deflate::bare, packed, out, name).ok())
      return damaged(format("member '{}': compressed data is damaged", name));
  }
  if (crc32(out) != member.crc32) return damaged(format("member '{}': CRC-32 is wrong", name));
  return {};
}

Status ZipReader::unpack(const ZipMember& member, const OnPiece& on_piece) const {
  STOKER_CHECK(member.is_readable());
  STOKER_ASSIGN_OR_RETURN(begin, data_offset(member));
  const std::string name = printable(member.name.substr(0, 80));
  constexpr std::uint64_t kPiece = 1u << 20;
  std::uint32_t crc = 0;
  std::uint64_t got = 0;
  if (member.method == 0) {
    std::vector<std::byte> piece(std::min(kPiece, member.bytes));
    for (; got < member.bytes; got += piece.size()) {
      piece.resize(std::min(kPiece, member.bytes - got));
      STOKER_RETURN_IF_ERROR(read_(begin + got, piece));
      crc = crc32(piece, crc);
      STOKER_RETURN_IF_ERROR(on_piece(piece));
    }
  } else if (member.bytes > 0) {
    GzipStream packed(read_, begin, member);
    STOKER_ASSIGN_OR_RETURN(
        reader,
        DecompressingReader::open(
            name, [&packed](std::span<std::byte> out) { return packed.next(out); }, CompressionFormat::gzip));
    for (;;) {
      const auto piece = reader.next();
      if (!piece.ok() && piece.status().code() != Code::corrupt) return piece.status();
      if (!piece.ok() || piece->size() > member.bytes - got)
        return damaged(format("member '{}': compressed data is damaged", name));
      if (piece->empty()) break;
      crc = crc32(*piece, crc);
      got += piece->size();
      STOKER_RETURN_IF_ERROR(on_piece(*piece));
    }
  }
  if (got == member.bytes && crc == member.crc32) return {};
  return damaged(format("member '{}': CRC-32 is wrong", name));
}

Result<ZipFile> open_zip_file(const Path& path) {
  STOKER_ASSIGN_OR_RETURN(opened, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, opened.size());
  const auto file = std::make_shared<const File>(std::move(opened));
  const ReadAt read = [file](std::uint64_t offset, std::span<std::byte> out) {
    return file->read_at(offset, out);
  };
  STOKER_ASSIGN_OR_RETURN(zip, ZipReader::open(read, size, printable(path.string())));
  return ZipFile{file, std::move(zip)};
}

}  // namespace stoker::archive
