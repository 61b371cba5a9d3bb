#include "format/zip.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "base/hashes/crc32.h"
#include "format/chunks/filters.h"
#include "format/expand.h"
#include "format/load.h"

namespace stoker::formats {

static_assert(std::endian::native == std::endian::little, "zip numbers are read in place");

namespace {

constexpr std::uint32_t kEndMagic = 0x06054b50;
constexpr std::uint32_t kWideEndMagic = 0x06064b50;
constexpr std::uint32_t kWideLocatorMagic = 0x07064b50;
constexpr std::uint32_t kMemberMagic = 0x02014b50;
constexpr std::uint32_t kLocalMagic = 0x04034b50;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kWideEndBytes = 56;
constexpr std::size_t kWideLocatorBytes = 20;
constexpr std::size_t kMemberBytes = 46;
constexpr std::size_t kLocalBytes = 30;
constexpr std::uint64_t kLongestComment = 0xFFFF;
constexpr std::uint64_t kDirectoryLimit = std::uint64_t{2} << 30;
// Deflate codes at most 258 bytes in two bits or so: more than 1032 to 1 is a lie.
constexpr std::uint64_t kMostInflation = 1032;
constexpr std::uint32_t kNarrow32 = 0xFFFFFFFF;

std::string_view text_at(std::span<const std::byte> bytes, std::size_t offset, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes.data()) + offset, size};
}

// Sizes and places that did not fit 32 bits stand in extra field 1, in this order, only those that are
// 0xFFFFFFFF.
bool apply_wide(std::span<const std::byte> extra, ZipMember& member) {
  while (extra.size() >= 4) {
    const auto id = load<std::uint16_t>(extra, 0);
    const auto size = load<std::uint16_t>(extra, 2);
    if (size > extra.size() - 4) return true;  // others' private fields may be malformed
    if (id != 1) {
      extra = extra.subspan(4u + size);
      continue;
    }
    std::span<const std::byte> values = extra.subspan(4, size);
    for (std::uint64_t* field : {&member.bytes, &member.stored_bytes, &member.header_offset}) {
      if (*field != kNarrow32) continue;
      if (values.size() < 8) return false;
      *field = load<std::uint64_t>(values, 0);
      values = values.subspan(8);
    }
    return true;
  }
  return true;
}

// A member's DEFLATE stream as if it were a file of gzip, whose header and end it gets.
class AsGzip {
 public:
  AsGzip(ReadAt read, std::uint64_t begin, const ZipMember& member)
      : read_(std::move(read)), begin_(begin), stored_(member.stored_bytes) {
    const auto size = static_cast<std::uint32_t>(member.bytes);  // as gzip has it: modulo 2^32
    std::memcpy(end_.data(), &member.crc32, sizeof member.crc32);
    std::memcpy(end_.data() + sizeof member.crc32, &size, sizeof size);
  }

  Result<std::size_t> next(std::span<std::byte> out) {
    std::size_t given = take(kHeader, 0, out);
    const std::uint64_t first = kHeader.size();
    if (given < out.size() && at_ < first + stored_) {
      const auto part =
          out.subspan(given).first(std::min<std::uint64_t>(out.size() - given, first + stored_ - at_));
      RETURN_IF_ERROR(read_(begin_ + at_ - first, part));
      at_ += part.size();
      given += part.size();
    }
    return given + take(end_, first + stored_, out.subspan(given));
  }

 private:
  std::size_t take(std::span<const std::byte> part, std::uint64_t begins, std::span<std::byte> out) {
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

Result<ZipReader> ZipReader::open(ReadAt read, std::uint64_t size, std::string subject) {
  ZipReader zip;
  zip.read_ = std::move(read);
  zip.size_ = size;
  zip.subject_ = std::move(subject);
  OK_OR_RETURN(directory, zip.find_directory());
  RETURN_IF_ERROR(zip.read_directory(directory));
  RETURN_IF_ERROR(zip.check_places(directory.offset));
  return zip;
}

// The end record is the last thing but for a comment of up to 64 KiB.
Result<ZipReader::Directory> ZipReader::find_directory() const {
  if (size_ < kEndBytes) return damaged("too short for a zip archive");
  const std::uint64_t window = std::min<std::uint64_t>(size_, kEndBytes + kLongestComment);
  std::vector<std::byte> tail(window);
  RETURN_IF_ERROR(read_(size_ - window, tail));
  std::optional<std::size_t> found;
  for (std::size_t at = tail.size() - kEndBytes + 1; at-- > 0;) {
    if (load<std::uint32_t>(tail, at) != kEndMagic) continue;
    if (load<std::uint16_t>(tail, at + 20) > tail.size() - at - kEndBytes) continue;
    found = at;
    break;
  }
  if (!found) return damaged("has no directory at its end: cut off, or no zip archive");
  const std::span<const std::byte> end = std::span(tail).subspan(*found);
  if (load<std::uint16_t>(end, 4) != 0 || load<std::uint16_t>(end, 6) != 0) {
    return invalid("{}: is one of several volumes, which is not supported", subject_);
  }
  Directory directory{.offset = load<std::uint32_t>(end, 16),
                      .bytes = load<std::uint32_t>(end, 12),
                      .members = load<std::uint16_t>(end, 10)};
  const std::uint64_t end_offset = size_ - window + *found;
  if (directory.offset == kNarrow32 || directory.bytes == kNarrow32 || directory.members == 0xFFFF) {
    OK_OR_RETURN(wide, wide_directory(end_offset));
    if (wide.bytes != 0 || wide.members != 0) directory = wide;
  }
  if (directory.offset > end_offset || directory.bytes > end_offset - directory.offset) {
    return damaged("its directory reaches beyond the end");
  }
  if (directory.bytes > kDirectoryLimit) {
    return invalid("{}: its directory has {} bytes (at most {})", subject_, directory.bytes, kDirectoryLimit);
  }
  if (directory.members > directory.bytes / kMemberBytes) {
    return damaged(
        format("claims {} members in a directory of {} bytes", directory.members, directory.bytes));
  }
  return directory;
}

// Nothing (all zero) where the narrow record just happens to hold such numbers.
Result<ZipReader::Directory> ZipReader::wide_directory(std::uint64_t end_offset) const {
  if (end_offset < kWideLocatorBytes) return Directory{};
  std::byte locator[kWideLocatorBytes];
  RETURN_IF_ERROR(read_(end_offset - kWideLocatorBytes, locator));
  if (load<std::uint32_t>(locator, 0) != kWideLocatorMagic) return Directory{};
  const auto at = load<std::uint64_t>(locator, 8);
  if (at > end_offset - kWideLocatorBytes || end_offset - kWideLocatorBytes - at < kWideEndBytes) {
    return damaged("its zip64 record is not where it says");
  }
  std::byte record[kWideEndBytes];
  RETURN_IF_ERROR(read_(at, record));
  if (load<std::uint32_t>(record, 0) != kWideEndMagic)
    return damaged("its zip64 record is not where it says");
  return Directory{.offset = load<std::uint64_t>(record, 48),
                   .bytes = load<std::uint64_t>(record, 40),
                   .members = load<std::uint64_t>(record, 32)};
}

Status ZipReader::read_directory(const Directory& directory) {
  std::vector<std::byte> bytes(directory.bytes);
  RETURN_IF_ERROR(read_(directory.offset, bytes));
  std::span<const std::byte> left = bytes;
  members_.reserve(directory.members);
  for (std::uint64_t i = 0; i < directory.members; ++i) {
    if (left.size() < kMemberBytes || load<std::uint32_t>(left, 0) != kMemberMagic) {
      return damaged(format("its directory ends at member {} of {}", i + 1, directory.members));
    }
    const std::size_t name = load<std::uint16_t>(left, 28);
    const std::size_t extra = load<std::uint16_t>(left, 30);
    const std::size_t comment = load<std::uint16_t>(left, 32);
    if (name + extra + comment > left.size() - kMemberBytes) {
      return damaged(format("its directory ends at member {} of {}", i + 1, directory.members));
    }
    ZipMember& member = members_.emplace_back();
    member.name = text_at(left, kMemberBytes, name);
    const auto made_by = static_cast<std::uint8_t>(left[5]);
    const auto mode = load<std::uint32_t>(left, 38) >> 16;
    member.is_symbolic_link = made_by == 3 && (mode & 0170000) == 0120000;  // made on Unix, S_IFLNK
    if (made_by == 3) member.mode = mode & 07777;
    member.is_encrypted = (load<std::uint16_t>(left, 8) & 1) != 0;
    member.method = load<std::uint16_t>(left, 10);
    member.crc32 = load<std::uint32_t>(left, 16);
    member.stored_bytes = load<std::uint32_t>(left, 20);
    member.bytes = load<std::uint32_t>(left, 24);
    member.header_offset = load<std::uint32_t>(left, 42);
    if (!apply_wide(left.subspan(kMemberBytes + name, extra), member)) {
      return damaged(format("member '{}': its zip64 field is torn", printable(member.name.substr(0, 80))));
    }
    member.unsafe = unsafe_name(member.name);
    left = left.subspan(kMemberBytes + name + extra + comment);
  }
  return {};
}

// Members lie one behind the other before the directory, each no larger unpacked than it can be.
Status ZipReader::check_places(std::uint64_t end) const {
  std::vector<const ZipMember*> by_place;
  by_place.reserve(members_.size());
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
    if (member.method == 8 && member.bytes / kMostInflation > member.stored_bytes) {
      return named(format("claims {} bytes of {} compressed ones, more than 1032 to 1", member.bytes,
                          member.stored_bytes));
    }
    by_place.push_back(&member);
  }
  std::sort(by_place.begin(), by_place.end(),
            [](const ZipMember* a, const ZipMember* b) { return a->header_offset < b->header_offset; });
  for (std::size_t i = 1; i < by_place.size(); ++i) {
    const ZipMember& before = *by_place[i - 1];
    if (before.header_offset + kLocalBytes + before.stored_bytes > by_place[i]->header_offset) {
      return damaged(format("members '{}' and '{}' overlap", printable(before.name.substr(0, 80)),
                            printable(by_place[i]->name.substr(0, 80))));
    }
  }
  return {};
}

Result<std::uint64_t> ZipReader::data_offset(const ZipMember& member) const {
  const std::string name = printable(member.name.substr(0, 80));
  std::byte local[kLocalBytes];
  RETURN_IF_ERROR(read_(member.header_offset, local));
  if (load<std::uint32_t>(local, 0) != kLocalMagic) {
    return damaged(format("member '{}': is not where the directory says", name));
  }
  const std::uint64_t begin =
      member.header_offset + kLocalBytes + load<std::uint16_t>(local, 26) + load<std::uint16_t>(local, 28);
  if (begin > size_ || member.stored_bytes > size_ - begin) {
    return damaged(format("member '{}': reaches beyond the end", name));
  }
  return begin;
}

Status ZipReader::read(const ZipMember& member, std::span<std::byte> out) const {
  CHECK(member.is_readable() && out.size() == member.bytes);
  OK_OR_RETURN(begin, data_offset(member));
  const std::string name = printable(member.name.substr(0, 80));
  if (member.method == 0) {
    RETURN_IF_ERROR(read_(begin, out));
  } else if (member.bytes > 0) {
    if (member.stored_bytes > kNarrow32 || member.bytes > kNarrow32) {
      return invalid("{}: member '{}': compressed members may have up to 4 GiB", subject_, name);
    }
    std::vector<std::byte> packed(member.stored_bytes);
    RETURN_IF_ERROR(read_(begin, packed));
    if (!inflate(Deflate::bare, packed, out, name).ok())
      return damaged(format("member '{}': compressed data is damaged", name));
  }
  if (crc32(out) != member.crc32) return damaged(format("member '{}': CRC-32 is wrong", name));
  return {};
}

Status ZipReader::unpack(const ZipMember& member, const Take& take) const {
  CHECK(member.is_readable());
  OK_OR_RETURN(begin, data_offset(member));
  const std::string name = printable(member.name.substr(0, 80));
  constexpr std::uint64_t kPiece = 1u << 20;
  std::uint32_t crc = 0;
  std::uint64_t got = 0;
  if (member.method == 0) {
    std::vector<std::byte> piece(std::min(kPiece, member.bytes));
    for (; got < member.bytes; got += piece.size()) {
      piece.resize(std::min(kPiece, member.bytes - got));
      RETURN_IF_ERROR(read_(begin + got, piece));
      crc = crc32(piece, crc);
      RETURN_IF_ERROR(take(piece));
    }
  } else if (member.bytes > 0) {
    AsGzip packed(read_, begin, member);
    OK_OR_RETURN(reader,
                 ExpandingReader::open(
                     name, [&packed](std::span<std::byte> out) { return packed.next(out); }, Packing::gzip));
    for (;;) {
      const auto piece = reader.next();
      if (!piece.ok() && piece.status().code() != Code::corrupt) return piece.status();
      if (!piece.ok() || piece->size() > member.bytes - got)
        return damaged(format("member '{}': compressed data is damaged", name));
      if (piece->empty()) break;
      crc = crc32(*piece, crc);
      got += piece->size();
      RETURN_IF_ERROR(take(*piece));
    }
  }
  if (got == member.bytes && crc == member.crc32) return {};
  return damaged(format("member '{}': CRC-32 is wrong", name));
}

}  // namespace stoker::formats
