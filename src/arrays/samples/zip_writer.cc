#include "arrays/samples/zip_writer.h"

#include <utility>

#include "arrays/samples/little_endian_writer.h"
#include "base/hashes/crc32.h"

namespace stoker::arrays {

namespace {

constexpr std::uint64_t kZip64Marker = 0xFFFFFFFF;  // the value is in the zip64 field
constexpr std::uint64_t kZip64CountMarker = 0xFFFF;
constexpr std::uint16_t kZip64ExtraId = 1;
constexpr std::uint16_t kVersion = 45;  // the first with 64-bit sizes
constexpr std::uint16_t kNamesAreUtf8 = 1 << 11;
constexpr std::uint32_t kMidnight1980 = 0x0021'0000;  // the earliest time in the format

}  // namespace

StoredZipWriter::StoredZipWriter(archive::ByteSink& sink, std::string first) : sink_(sink) {
  members_.push_back({.name = std::move(first), .offset = 0, .bytes = 0, .crc32 = 0});
}

std::string StoredZipWriter::local_header(const Member& member, bool is_zip64) {
  LittleEndianWriter header;
  header.text("PK\3\4").number(kVersion, 2).number(kNamesAreUtf8, 2).number(0, 2).number(kMidnight1980, 4);
  header.number(member.crc32, 4);
  header.number(is_zip64 ? kZip64Marker : member.bytes, 4).number(is_zip64 ? kZip64Marker : member.bytes, 4);
  header.number(member.name.size(), 2).number(is_zip64 ? 20 : 0, 2).text(member.name);
  if (is_zip64) header.number(kZip64ExtraId, 2).number(16, 2).number(member.bytes, 8).number(member.bytes, 8);
  return header.take();
}

std::uint64_t StoredZipWriter::first_begin() const {
  return local_header(members_[0], /*is_zip64=*/true).size();
}

Status StoredZipWriter::put(std::string_view bytes) {
  at_ += bytes.size();
  return sink_.write(std::as_bytes(std::span(bytes)));
}

Status StoredZipWriter::begin_first() { return put(local_header(members_[0], /*is_zip64=*/true)); }

Status StoredZipWriter::append(std::span<const std::byte> piece, std::uint32_t crc32c) {
  members_[0].crc32 = crc32(piece, members_[0].crc32);
  members_[0].bytes += piece.size();
  at_ += piece.size();
  return sink_.write_with_crc(piece, crc32c);
}

Status StoredZipWriter::append(std::string_view piece) {
  const auto bytes = std::as_bytes(std::span(piece));
  members_[0].crc32 = crc32(bytes, members_[0].crc32);
  members_[0].bytes += piece.size();
  return put(piece);
}

Status StoredZipWriter::add(std::string name, std::span<const std::byte> bytes) {
  const Member& member = members_.emplace_back(
      Member{.name = std::move(name), .offset = at_, .bytes = bytes.size(), .crc32 = crc32(bytes)});
  STOKER_RETURN_IF_ERROR(put(local_header(member, bytes.size() >= kZip64Marker)));
  at_ += bytes.size();
  return sink_.write(bytes);
}

Status StoredZipWriter::finish() {
  const std::uint64_t directory = at_;
  for (const Member& member : members_) {
    const bool is_large = member.bytes >= kZip64Marker;
    const bool is_far = member.offset >= kZip64Marker;
    LittleEndianWriter zip64_extra;
    if (is_large) zip64_extra.number(member.bytes, 8).number(member.bytes, 8);
    if (is_far) zip64_extra.number(member.offset, 8);
    const std::size_t extra = zip64_extra.str().empty() ? 0 : zip64_extra.str().size() + 4;
    constexpr std::uint64_t kRegularFile = std::uint64_t{0100444} << 16;
    constexpr std::uint16_t kMadeOnUnix = 3 << 8 | kVersion;
    LittleEndianWriter entry;
    entry.text("PK\1\2").number(kMadeOnUnix, 2).number(kVersion, 2).number(kNamesAreUtf8, 2).number(0, 2);
    entry.number(kMidnight1980, 4).number(member.crc32, 4);
    entry.number(is_large ? kZip64Marker : member.bytes, 4).number(is_large ? kZip64Marker : member.bytes, 4);
    entry.number(member.name.size(), 2).number(extra, 2).number(0, 2 + 2 + 2).number(kRegularFile, 4);
    entry.number(is_far ? kZip64Marker : member.offset, 4).text(member.name);
    if (extra > 0) entry.number(kZip64ExtraId, 2).number(extra - 4, 2).text(zip64_extra.str());
    STOKER_RETURN_IF_ERROR(put(entry.str()));
  }
  const std::uint64_t end = at_;
  const std::uint64_t count = members_.size();
  const bool is_zip64 =
      directory >= kZip64Marker || end - directory >= kZip64Marker || count >= kZip64CountMarker;
  LittleEndianWriter last;
  if (is_zip64) {
    last.text(std::string_view("PK\6\6")).number(44, 8).number(kVersion, 2).number(kVersion, 2).number(0, 8);
    last.number(count, 8).number(count, 8).number(end - directory, 8).number(directory, 8);
    last.text(std::string_view("PK\6\7")).number(0, 4).number(end, 8).number(1, 4);
  }
  const std::uint64_t count_field = is_zip64 ? kZip64CountMarker : count;
  last.text("PK\5\6").number(0, 4).number(count_field, 2).number(count_field, 2);
  last.number(is_zip64 ? kZip64Marker : end - directory, 4)
      .number(is_zip64 ? kZip64Marker : directory, 4)
      .number(0, 2);
  STOKER_RETURN_IF_ERROR(put(last.str()));
  const std::string head = local_header(members_[0], /*is_zip64=*/true);
  return sink_.overwrite_head(std::as_bytes(std::span(head)));
}

}  // namespace stoker::arrays
