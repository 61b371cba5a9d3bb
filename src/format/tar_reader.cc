#include <algorithm>
#include <array>
#include <cstring>

#include "format/tar.h"

namespace stoker::formats {

namespace {

constexpr std::uint64_t kPaxLimit = 1u << 20;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 62;

using Block = std::array<std::byte, kTarBlock>;

std::string_view field(std::span<const std::byte> block, std::size_t offset, std::size_t size) {
  return {reinterpret_cast<const char*>(block.data()) + offset, size};
}

std::string_view until_nul(std::string_view text) { return text.substr(0, text.find('\0')); }

// A numeric field: octal digits with blanks around, or base 256 when the first byte's high bit is set.
std::optional<std::uint64_t> number(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  std::uint64_t value = 0;
  if (lead & 0x80) {
    if (lead & 0x40) return std::nullopt;  // negative
    value = lead & 0x3F;
    for (char c : text.substr(1)) {
      if (value >= kLargest >> 8) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  text = trim(until_nul(text));
  for (char c : text) {
    if (c < '0' || c > '7' || value >= kLargest >> 3) return std::nullopt;
    value = value << 3 | static_cast<unsigned>(c - '0');
  }
  return value;
}

bool checksum_holds(std::span<const std::byte> block) {
  const std::optional<std::uint64_t> stored = number(field(block, 148, 8));
  std::int64_t as_unsigned = 8 * ' ';
  std::int64_t as_signed = 8 * ' ';
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (i >= 148 && i < 156) continue;
    as_unsigned += static_cast<unsigned char>(block[i]);
    as_signed += static_cast<signed char>(block[i]);
  }
  // Some old writers summed signed chars.
  const auto expected = static_cast<std::int64_t>(stored.value_or(kLargest));
  return expected == as_unsigned || expected == as_signed;
}

bool is_zero(std::span<const std::byte> block) {
  return std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::optional<TarKind> kind_of(char type, std::string_view name) {
  switch (type) {
    case '\0':
    case '0':
    case '7':
      // Before ustar a folder was a file whose name ends in a slash.
      return type == '\0' && name.ends_with('/') ? TarKind::directory : TarKind::file;
    case '1':
      return TarKind::hard_link;
    case '2':
      return TarKind::symbolic_link;
    case '3':
      return TarKind::character_device;
    case '4':
      return TarKind::block_device;
    case '5':
      return TarKind::directory;
    case '6':
      return TarKind::fifo;
    default:
      return std::nullopt;
  }
}

bool is_extension(char type) {
  return type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
}

}  // namespace

std::string_view unsafe_name(std::string_view name) {
  if (name.empty()) return "empty name";
  if (name.front() == '/') return "absolute name";
  for (std::string_view part : split(name, '/')) {
    if (part == "..") return "'..' in the name";
  }
  if (printable(name) != name) return "control byte or invalid UTF-8 in the name";
  return {};
}

Status TarReader::damaged(std::string_view what) const {
  return corrupt("{}: byte {}: {}", subject_, position_, what);
}

Result<std::optional<TarMember>> TarReader::next() {
  if (done_) return std::optional<TarMember>();
  Result<std::optional<TarMember>> found = next_member();
  if (!found.ok() || !found->has_value()) done_ = true;
  return found;
}

// True at the end of the archive; else `block` holds a header whose checksum holds.
Result<bool> TarReader::at_end(std::span<std::byte> block) {
  for (;;) {
    if (position_ == size_) return true;
    if (size_ - position_ < kTarBlock) {
      // What follows an end mark is no business of ours.
      if (ended_) return true;
      return damaged(format("ends inside a header ({} of 512 bytes)", size_ - position_));
    }
    RETURN_IF_ERROR(read_(position_, block));
    if (!is_zero(block)) break;
    RETURN_IF_ERROR(skip_end_mark());
  }
  if (checksum_holds(block)) {
    ended_ = false;
    return false;
  }
  if (ended_) return true;
  return damaged("not a tar header (checksum)");
}

// Moves behind a run of zero blocks, read in large pieces: a preallocated file may be all zeros.
Status TarReader::skip_end_mark() {
  std::vector<std::byte> piece(65536);
  const std::uint64_t begin = position_;
  while (size_ - position_ >= kTarBlock) {
    const std::uint64_t bytes =
        std::min<std::uint64_t>(piece.size(), (size_ - position_) / kTarBlock * kTarBlock);
    const auto window = std::span(piece).first(bytes);
    RETURN_IF_ERROR(read_(position_, window));
    const auto other =
        std::find_if(window.begin(), window.end(), [](std::byte b) { return b != std::byte{0}; });
    position_ += static_cast<std::uint64_t>(other - window.begin()) / kTarBlock * kTarBlock;
    if (other != window.end()) break;
  }
  if (position_ - begin >= 2 * kTarBlock) ended_ = true;
  return {};
}

Result<std::optional<TarMember>> TarReader::next_member() {
  Overrides overrides = global_;
  Block block;
  std::uint64_t first_header = 0;
  bool extended = false;  // an extended header waits for its member
  for (;;) {
    OK_OR_RETURN(end, at_end(block));
    if (end && extended) return damaged("ends behind an extended header, without its member");
    if (end) return std::optional<TarMember>();
    if (!extended) first_header = position_;
    const char type = static_cast<char>(block[156]);
    if (!is_extension(type)) break;
    const std::optional<std::uint64_t> size = number(field(block, 124, 12));
    if (!size) return damaged("not a number in the size field");
    RETURN_IF_ERROR(read_extension(type, *size, overrides));
    extended = extended || type != 'g';
  }
  OK_OR_RETURN(found, member(block, overrides));
  found.header_offset = first_header;
  found.data_offset = position_ + kTarBlock;
  RETURN_IF_ERROR(advance(found.size, found.name));
  return std::optional<TarMember>(std::move(found));
}

// Moves behind the header at position_ and `data_bytes` of data.
Status TarReader::advance(std::uint64_t data_bytes, std::string_view name) {
  const std::uint64_t left = size_ - position_ - kTarBlock;
  if (data_bytes > left) {
    return damaged(format("member '{}' of {} bytes reaches {} bytes beyond the end",
                          printable(name.substr(0, 80)), data_bytes, data_bytes - left));
  }
  const std::uint64_t padding = (kTarBlock - data_bytes % kTarBlock) % kTarBlock;
  // The last member's padding may be cut off: its data is whole.
  position_ += kTarBlock + std::min(left, data_bytes + padding);
  return {};
}

Status TarReader::read_extension(char type, std::uint64_t size, Overrides& into) {
  const bool is_name = type == 'L';
  const std::uint64_t limit = is_name || type == 'K' ? kTarNameLimit + 1 : kPaxLimit;
  if (size > limit) return damaged(format("extended header of {} bytes, more than {}", size, limit));
  if (size > size_ - position_ - kTarBlock) return advance(size, "extended header");
  std::string text(size, '\0');
  RETURN_IF_ERROR(read_(position_ + kTarBlock, std::as_writable_bytes(std::span(text))));
  if (is_name) {
    into.path = std::string(until_nul(text));
  } else if (type == 'g') {
    RETURN_IF_ERROR(apply_pax(text, global_));
    into = global_;
  } else if (type == 'K') {
    into.link = std::string(until_nul(text));
  } else {
    RETURN_IF_ERROR(apply_pax(text, into));
  }
  return advance(size, "extended header");
}

Status TarReader::apply_pax(std::string_view records, Overrides& into) {
  while (!records.empty() && records.front() != '\0') {
    const std::size_t blank = records.find(' ');
    std::uint64_t length = 0;
    if (blank == std::string_view::npos || !parse_number(records.substr(0, blank), &length) ||
        length > records.size() || length < blank + 3 || records[length - 1] != '\n') {
      return damaged("malformed pax record");
    }
    const std::string_view record = records.substr(blank + 1, length - blank - 2);
    records.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0) return damaged("malformed pax record");
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key.starts_with("GNU.sparse.") || key == "SCHILY.realsize") {
      return invalid("{}: byte {}: sparse file (pax '{}'), which is not supported", subject_, position_,
                     printable(key));
    }
    if (key == "path" && value.size() > kTarNameLimit) return damaged("name longer than 4096 bytes");
    if (key == "path") into.path = std::string(value);
    if (key == "linkpath" && value.size() > kTarNameLimit) return damaged("link longer than 4096 bytes");
    if (key == "linkpath") into.link = std::string(value);
    std::int64_t seconds = 0;
    if (key == "mtime" && parse_number(value.substr(0, value.find('.')), &seconds)) into.mtime = seconds;
    std::uint64_t size = 0;
    if (key == "size" && (!parse_number(value, &size) || size >= kLargest)) {
      return damaged("pax size is not a number");
    }
    if (key == "size") into.size = size;
  }
  return {};
}

Result<TarMember> TarReader::member(std::span<const std::byte> block, const Overrides& overrides) {
  TarMember found;
  const bool posix = field(block, 257, 6) == std::string_view("ustar\0", 6);
  found.name = std::string(until_nul(field(block, 0, 100)));
  // In GNU's own variant ("ustar  ") other fields lie where POSIX has the prefix.
  if (const std::string_view prefix = until_nul(field(block, 345, 155)); posix && !prefix.empty()) {
    found.name = format("{}/{}", prefix, found.name);
  }
  if (overrides.path) found.name = *overrides.path;
  const char type = static_cast<char>(block[156]);
  if (type == 'S') {
    return invalid("{}: byte {}: member '{}' is a sparse file, which is not supported", subject_, position_,
                   printable(found.name));
  }
  const std::optional<TarKind> kind = kind_of(type, found.name);
  if (!kind) {
    return invalid("{}: byte {}: member '{}' has type '{}', which is not supported", subject_, position_,
                   printable(found.name), printable(std::string_view(&type, 1)));
  }
  found.kind = *kind;
  const std::optional<std::uint64_t> size = number(field(block, 124, 12));
  if (!size) return damaged("not a number in the size field");
  // Links, folders and devices store no data, whatever their size field says.
  if (found.kind == TarKind::file) found.size = overrides.size.value_or(*size);
  const bool is_link = found.kind == TarKind::hard_link || found.kind == TarKind::symbolic_link;
  if (is_link) found.link = overrides.link.value_or(std::string(until_nul(field(block, 157, 100))));
  // Neither is worth refusing an archive for.
  found.mode = static_cast<std::uint32_t>(number(field(block, 100, 8)).value_or(0644) & 07777);
  found.mtime =
      overrides.mtime.value_or(static_cast<std::int64_t>(number(field(block, 136, 12)).value_or(0)));
  found.unsafe = unsafe_name(found.name);
  return found;
}

}  // namespace stoker::formats
