#include <algorithm>
#include <array>
#include <cstring>

#include "base/hash.h"
#include "format/tar.h"

namespace stoker::formats {

namespace {

constexpr std::size_t kNameBytes = kTarPlainName;
constexpr std::size_t kPrefixBytes = 155;
constexpr std::uint64_t kOctalSizeLimit = std::uint64_t{1} << 33;  // eleven octal digits
constexpr std::string_view kPaxName = "././@PaxHeader";

using Header = std::array<char, kTarBlock>;

std::uint64_t padded(std::uint64_t size, std::uint64_t unit) { return (size + unit - 1) / unit * unit; }

void put_octal(char* field, std::size_t digits, std::uint64_t value) {
  for (std::size_t i = digits; i-- > 0; value >>= 3) field[i] = static_cast<char>('0' + (value & 7));
}

// Where ustar cuts a long name: the last '/' that leaves at most 155 bytes before and 1 to 100 behind it.
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

// What all headers of files share, with blanks where the checksum goes.
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

Status ByteSink::put_head(std::span<const std::byte> /*head*/) {
  return internal("this sink cannot replace what was written");
}

Status ByteSink::write_with_crc(std::span<const std::byte> data, std::uint32_t /*crc32c*/) {
  return write(data);
}

Status TarWriter::put(std::span<const std::byte> data) {
  RETURN_IF_ERROR(sink_.write(data));
  position_ += data.size();
  return {};
}

Status TarWriter::pad(std::uint64_t unit) {
  static constexpr std::array<std::byte, kTarRecord> kZeros{};
  return put(std::span(kZeros).first(padded(position_, unit) - position_));
}

Result<std::uint64_t> TarWriter::begin(std::string_view name, std::uint64_t size) {
  CHECK(owed_ == 0);
  RETURN_IF_ERROR(check_name(name));
  if (needs_pax(name, size)) {
    const std::string records = pax_records(name, size);
    const Header extended = make_header(kPaxName, records.size(), 'x');
    RETURN_IF_ERROR(put(std::as_bytes(std::span(extended))));
    RETURN_IF_ERROR(put(std::as_bytes(std::span(records))));
    RETURN_IF_ERROR(pad(kTarBlock));
  }
  const Header header = make_header(name, size, '0');
  RETURN_IF_ERROR(put(std::as_bytes(std::span(header))));
  owed_ = size;
  return position_;
}

Status TarWriter::append(std::span<const std::byte> data, std::uint32_t crc32c) {
  CHECK(data.size() <= owed_);
  owed_ -= data.size();
  RETURN_IF_ERROR(sink_.write_with_crc(data, crc32c));
  position_ += data.size();
  return {};
}

Status TarWriter::end() {
  if (owed_ != 0) return internal("tar member: {} bytes short of the announced size", owed_);
  return pad(kTarBlock);
}

Result<std::uint64_t> TarWriter::add(std::string_view name, std::span<const std::byte> data) {
  OK_OR_RETURN(offset, begin(name, data.size()));
  RETURN_IF_ERROR(append(data, crc32c(data)));
  RETURN_IF_ERROR(end());
  return offset;
}

Status TarWriter::finish() {
  CHECK(owed_ == 0);
  static constexpr std::array<std::byte, 2 * kTarBlock> kEnd{};
  RETURN_IF_ERROR(put(kEnd));
  return pad(kTarRecord);
}

}  // namespace stoker::formats
