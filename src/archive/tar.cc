#include "archive/tar.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/hash.h"

namespace stoker::archive {

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

bool checksum_matches(std::span<const std::byte> block) {
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

// Returns true at the end of the archive; otherwise `block` holds a header with a valid checksum.
Result<bool> TarReader::at_end(std::span<std::byte> block) {
  const std::uint64_t begin = position_;
  for (;;) {
    if (position_ == size_) return true;
    if (size_ - position_ < kTarBlock) {
      // Ignore trailing data after an end mark.
      if (ended_) return true;
      return damaged(format("ends inside a header ({} of 512 bytes)", size_ - position_));
    }
    STOKER_RETURN_IF_ERROR(read_(position_, block));
    if (!is_zero(block)) break;
    STOKER_RETURN_IF_ERROR(skip_end_mark());
  }
  if (checksum_matches(block)) {
    if (position_ - begin == kTarBlock && !lone_zero_block_) lone_zero_block_ = begin;
    ended_ = false;
    return false;
  }
  if (ended_) return true;
  return damaged("not a tar header (checksum)");
}

// Skips a run of zero blocks in large reads: a preallocated file may be all zeros.
Status TarReader::skip_end_mark() {
  std::vector<std::byte> piece(65536);
  const std::uint64_t begin = position_;
  while (size_ - position_ >= kTarBlock) {
    const std::uint64_t bytes =
        std::min<std::uint64_t>(piece.size(), (size_ - position_) / kTarBlock * kTarBlock);
    const auto window = std::span(piece).first(bytes);
    STOKER_RETURN_IF_ERROR(read_(position_, window));
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
    STOKER_ASSIGN_OR_RETURN(end, at_end(block));
    if (end && extended) return damaged("ends after an extended header, without its member");
    if (end) return std::optional<TarMember>();
    if (!extended) first_header = position_;
    const char type = static_cast<char>(block[156]);
    if (!is_extension(type)) break;
    const std::optional<std::uint64_t> size = number(field(block, 124, 12));
    if (!size) return damaged("not a number in the size field");
    STOKER_RETURN_IF_ERROR(read_extension(type, *size, overrides));
    extended = extended || type != 'g';
  }
  STOKER_ASSIGN_OR_RETURN(found, member(block, overrides));
  found.header_offset = first_header;
  found.data_offset = position_ + kTarBlock;
  STOKER_RETURN_IF_ERROR(advance(found.size, found.name));
  return std::optional<TarMember>(std::move(found));
}

// Skips the header at position_ and `data_bytes` of data.
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
  STOKER_RETURN_IF_ERROR(read_(position_ + kTarBlock, std::as_writable_bytes(std::span(text))));
  if (is_name) {
    into.path = std::string(until_nul(text));
  } else if (type == 'g') {
    STOKER_RETURN_IF_ERROR(apply_pax(text, global_));
    into = global_;
  } else if (type == 'K') {
    into.link = std::string(until_nul(text));
  } else {
    STOKER_RETURN_IF_ERROR(apply_pax(text, into));
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
  // GNU's variant ("ustar  ") has other fields in place of POSIX's prefix.
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
  // Links, folders and devices have no data, whatever their size field.
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

namespace {

constexpr std::size_t kNameBytes = kTarShortName;
constexpr std::size_t kPrefixBytes = 155;
constexpr std::uint64_t kOctalSizeLimit = std::uint64_t{1} << 33;  // eleven octal digits
constexpr std::string_view kPaxName = "././@PaxHeader";

using Header = std::array<char, kTarBlock>;

std::uint64_t padded(std::uint64_t size, std::uint64_t unit) { return (size + unit - 1) / unit * unit; }

void put_octal(char* field, std::size_t digits, std::uint64_t value) {
  for (std::size_t i = digits; i-- > 0; value >>= 3) field[i] = static_cast<char>('0' + (value & 7));
}

// Where ustar splits a long name: the last '/' with at most 155 bytes before and 1 to 100 bytes after it.
std::size_t prefix_length(std::string_view name) {
  const std::size_t slash = name.rfind('/', kPrefixBytes);
  if (slash == std::string_view::npos || slash == 0) return std::string_view::npos;
  const std::size_t rest = name.size() - slash - 1;
  return rest >= 1 && rest <= kNameBytes ? slash : std::string_view::npos;
}

bool fits_ustar(std::string_view name) {
  return name.size() <= kNameBytes || prefix_length(name) != std::string_view::npos;
}

bool needs_pax(std::string_view name, std::uint64_t size) {
  return size >= kOctalSizeLimit || !fits_ustar(name);
}

// One pax record: "<length> <key>=<value>\n", where the length counts its own digits.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + std::to_string(rest).size();
  length = rest + std::to_string(length).size();
  return format("{} {}={}\n", length, key, value);
}

std::string pax_records(std::string_view name, std::uint64_t size) {
  std::string records;
  if (!fits_ustar(name)) records += pax_record("path", name);
  if (size >= kOctalSizeLimit) records += pax_record("size", std::to_string(size));
  return records;
}

// The constant fields of all file headers, with blanks for the checksum.
Header common_header() {
  Header h{};
  std::memcpy(h.data() + 100, "0000444", 8);
  std::memcpy(h.data() + 108, "0000000", 8);
  std::memcpy(h.data() + 116, "0000000", 8);
  put_octal(h.data() + 124, 11, 0);
  put_octal(h.data() + 136, 11, 0);
  std::memset(h.data() + 148, ' ', 8);
  std::memcpy(h.data() + 257, "ustar\00000", 8);
  std::memcpy(h.data() + 329, "0000000", 8);
  std::memcpy(h.data() + 337, "0000000", 8);
  return h;
}

unsigned sum_of(const char* bytes, std::size_t count) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<unsigned char>(bytes[i]);
  return sum;
}

Header make_header(std::string_view name, std::uint64_t size, char type) {
  static const Header kCommon = common_header();
  static const unsigned kCommonSum = sum_of(kCommon.data(), kCommon.size());
  Header h = kCommon;
  unsigned sum = kCommonSum + static_cast<unsigned char>(type);
  if (name.size() > kNameBytes) {
    if (const std::size_t cut = prefix_length(name); cut != std::string_view::npos) {
      std::memcpy(h.data() + 345, name.data(), cut);
      sum += sum_of(name.data(), cut);
      name.remove_prefix(cut + 1);
    }
  }
  const std::size_t kept = std::min(name.size(), kNameBytes);
  std::memcpy(h.data(), name.data(), kept);
  put_octal(h.data() + 124, 11, size < kOctalSizeLimit ? size : 0);
  h[156] = type;
  sum += sum_of(name.data(), kept) + sum_of(h.data() + 124, 11) - 11u * '0';
  put_octal(h.data() + 148, 6, sum);
  h[154] = '\0';
  return h;
}

Status check_name(std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    return invalid("tar member '{}': {}", printable(name.substr(0, 80)), why);
  };
  if (name.empty()) return refuse("empty name");
  if (name.size() > kTarNameLimit) return refuse("name longer than 4096 bytes");
  if (name.find('\0') != std::string_view::npos) return refuse("NUL byte in the name");
  if (name.front() == '/') return refuse("absolute name");
  for (std::string_view left = name;;) {
    const std::string_view part = left.substr(0, left.find('/'));
    if (part.empty() || part == "." || part == "..") return refuse("empty, '.' or '..' part in the name");
    if (part.size() == left.size()) return {};
    left.remove_prefix(part.size() + 1);
  }
}

}  // namespace

std::uint64_t tar_member_bytes(std::string_view name, std::uint64_t size) {
  std::uint64_t bytes = kTarBlock + padded(size, kTarBlock);
  if (needs_pax(name, size)) bytes += kTarBlock + padded(pax_records(name, size).size(), kTarBlock);
  return bytes;
}

std::uint64_t tar_archive_bytes(std::uint64_t member_bytes) {
  return padded(member_bytes + 2 * kTarBlock, kTarRecord);
}

Status ByteSink::overwrite_head(std::span<const std::byte> /*head*/) {
  return internal("this sink cannot replace what was written");
}

Status ByteSink::write_with_crc(std::span<const std::byte> data, std::uint32_t /*crc32c*/) {
  return write(data);
}

Status TarWriter::put(std::span<const std::byte> data) {
  STOKER_RETURN_IF_ERROR(sink_.write(data));
  position_ += data.size();
  return {};
}

Status TarWriter::pad(std::uint64_t unit) {
  static constexpr std::array<std::byte, kTarRecord> kZeros{};
  return put(std::span(kZeros).first(padded(position_, unit) - position_));
}

Result<std::uint64_t> TarWriter::begin(std::string_view name, std::uint64_t size) {
  STOKER_CHECK(remaining_ == 0);
  STOKER_RETURN_IF_ERROR(check_name(name));
  if (needs_pax(name, size)) {
    const std::string records = pax_records(name, size);
    const Header extended = make_header(kPaxName, records.size(), 'x');
    STOKER_RETURN_IF_ERROR(put(std::as_bytes(std::span(extended))));
    STOKER_RETURN_IF_ERROR(put(std::as_bytes(std::span(records))));
    STOKER_RETURN_IF_ERROR(pad(kTarBlock));
  }
  const Header header = make_header(name, size, '0');
  STOKER_RETURN_IF_ERROR(put(std::as_bytes(std::span(header))));
  remaining_ = size;
  return position_;
}

Status TarWriter::append(std::span<const std::byte> data, std::uint32_t crc32c) {
  STOKER_CHECK(data.size() <= remaining_);
  remaining_ -= data.size();
  STOKER_RETURN_IF_ERROR(sink_.write_with_crc(data, crc32c));
  position_ += data.size();
  return {};
}

Status TarWriter::end() {
  if (remaining_ != 0) return internal("tar member: {} bytes short of the announced size", remaining_);
  return pad(kTarBlock);
}

Result<std::uint64_t> TarWriter::add(std::string_view name, std::span<const std::byte> data) {
  STOKER_ASSIGN_OR_RETURN(offset, begin(name, data.size()));
  STOKER_RETURN_IF_ERROR(append(data, crc32c(data)));
  STOKER_RETURN_IF_ERROR(end());
  return offset;
}

Status TarWriter::finish() {
  STOKER_CHECK(remaining_ == 0);
  static constexpr std::array<std::byte, 2 * kTarBlock> kEnd{};
  STOKER_RETURN_IF_ERROR(put(kEnd));
  return pad(kTarRecord);
}

}  // namespace stoker::archive
