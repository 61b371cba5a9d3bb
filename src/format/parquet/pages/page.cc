#include "format/parquet/pages/page.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/hashes/crc32.h"
#include "format/parquet/pages/hybrid.h"
#include "format/parquet/pages/unpack.h"

namespace stoker::formats {

namespace {

using Bytes = std::span<const std::byte>;
using Field = ThriftReader::Field;
using Type = ThriftReader::Type;

// Number of values and encoding, which all kinds of pages have; then levels, which the versions have
// otherwise.
void read_kind(ThriftReader& reader, std::int32_t kind, PageHeader& page) {
  constexpr std::int32_t kFirst = 5, kSecond = 8;
  std::int64_t* const numbers[] = {&page.values,
                                   kind == kSecond ? nullptr : &page.encoding,
                                   kind == kFirst ? &page.definition_encoding : nullptr,
                                   kind == kFirst    ? &page.repetition_encoding
                                   : kind == kSecond ? &page.encoding
                                                     : nullptr,
                                   kind == kSecond ? &page.definition_bytes : nullptr,
                                   kind == kSecond ? &page.repetition_bytes : nullptr};
  reader.structure([&](const Field& field) {
    if (kind == kSecond && field.id == 7)
      page.is_packed = field.type == Type::yes;  // the value is in the type
    const bool is_known = field.id >= 1 && field.id <= static_cast<std::int32_t>(std::size(numbers));
    std::int64_t* const number = is_known ? numbers[field.id - 1] : nullptr;
    if (number == nullptr || !is_integer(field)) return false;
    *number = reader.integer();
    return true;
  });
}

// Takes the first `count` bytes off; false where there are not as many.
bool take(Bytes& bytes, std::uint64_t count, Bytes& taken) {
  if (count > bytes.size()) return false;
  taken = bytes.first(count);
  bytes = bytes.subspan(count);
  return true;
}

// Levels of version 1: runs have their length before them.
bool take_levels(Bytes& bytes, std::int64_t encoding, unsigned deepest, std::uint64_t count, Bytes& levels) {
  if (deepest == 0) return true;
  if (encoding == kBitPacked) return take(bytes, (count * std::bit_width(deepest) + 7) / 8, levels);
  std::uint32_t length = 0;
  Bytes head;
  if (!take(bytes, sizeof length, head)) return false;
  std::memcpy(&length, head.data(), sizeof length);
  return take(bytes, length, levels);
}

// What old writers had before runs: each number from its highest bit on, from a byte's highest on.
bool read_bit_packed(Bytes bytes, unsigned width, std::uint64_t count, std::vector<std::uint8_t>& levels) {
  if (count > bytes.size() * 8 / width) return false;
  std::size_t bit = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    unsigned level = 0;
    for (unsigned b = 0; b < width; ++b, ++bit)
      level = level << 1 | (static_cast<unsigned>(bytes[bit / 8]) >> (7 - bit % 8) & 1u);
    levels.push_back(static_cast<std::uint8_t>(level));
  }
  return true;
}

}  // namespace

PageHeader read_page_header(ThriftReader& reader) {
  PageHeader page;
  reader.structure([&](const Field& field) {
    if (field.type == Type::structure && (field.id == 5 || field.id == 7 || field.id == 8)) {
      read_kind(reader, field.id, page);
      return true;
    }
    if (!is_integer(field)) return false;
    switch (field.id) {
      case 1:
        page.type = reader.integer();
        return true;
      case 2:
        page.bytes = reader.integer();
        return true;
      case 3:
        page.packed_bytes = reader.integer();
        return true;
      case 4:
        page.crc = static_cast<std::uint32_t>(reader.integer());
        return true;
      default:
        return false;
    }
  });
  return page;
}

bool is_sound(const PageHeader& header, std::uint64_t available) {
  constexpr std::int64_t kMostValues = std::int64_t{1} << 31;
  if (header.bytes < 0 || header.packed_bytes < 0 ||
      static_cast<std::uint64_t>(header.packed_bytes) > available) {
    return false;
  }
  if (header.type == kDictionaryPage || header.is_data()) {
    if (header.values < 0 || header.values > kMostValues) return false;
  }
  const std::int64_t least = std::min(header.bytes, header.packed_bytes);
  return header.definition_bytes >= 0 && header.repetition_bytes >= 0 && header.definition_bytes <= least &&
         header.repetition_bytes <= least - header.definition_bytes;
}

Status another_crc(std::string_view subject) {
  return corrupt("{}: a page's CRC-32 is not that of its bytes", subject).cure("get the file again");
}

Result<PageParts> open_page(const Page& page, std::int64_t codec, DeepestLevels deepest, RawBytes& buffer,
                            std::string_view subject) {
  const PageHeader& header = page.header;
  PageParts parts;
  Bytes stored = page.stored;
  const auto damaged = [&] { return corrupt("{}: a page is damaged", subject); };
  if (header.type == kDataPage2) {
    const bool holds = take(stored, static_cast<std::uint64_t>(header.repetition_bytes), parts.repetition) &&
                       take(stored, static_cast<std::uint64_t>(header.definition_bytes), parts.definition);
    if (!holds) return damaged();
  }
  parts.packed_at = page.stored.size() - stored.size();
  const std::size_t ahead = parts.packed_at;
  if (static_cast<std::size_t>(header.bytes) < ahead) return damaged();
  const std::size_t unpacked = static_cast<std::size_t>(header.bytes) - ahead;
  const auto how = header.is_packed ? static_cast<ParquetCodec>(codec) : ParquetCodec::none;
  if (how == ParquetCodec::none && header.is_data() && stored.size() == unpacked) {
    parts.unpacked = stored;
  } else {
    buffer.resize(unpacked + kReadBehind);
    const auto into = std::span(buffer).first(unpacked);
    RETURN_IF_ERROR(unpack_page(how, stored, into, subject));
    parts.unpacked = into;
  }
  parts.values = parts.unpacked;
  if (header.type == kDataPage) {
    const auto count = static_cast<std::uint64_t>(header.values);
    const bool holds =
        take_levels(parts.values, header.repetition_encoding, deepest.repetition, count, parts.repetition) &&
        take_levels(parts.values, header.definition_encoding, deepest.definition, count, parts.definition);
    if (!holds) return damaged();
  }
  return parts;
}

bool read_levels(Bytes bytes, std::int64_t encoding, unsigned deepest, std::uint64_t count,
                 std::vector<std::uint8_t>& levels) {
  const auto width = static_cast<unsigned>(std::bit_width(deepest));
  if (encoding == kBitPacked) {
    levels.clear();
    if (!read_bit_packed(bytes, width, count, levels)) return false;
  } else {
    levels.resize(count);
    if (!Hybrid(bytes, width).take(std::span(levels))) return false;
  }
  if (deepest + 1 == 1u << width) return true;  // none can be deeper
  std::uint8_t most = 0;
  for (const std::uint8_t level : levels) most = std::max(most, level);
  return most <= deepest;
}

std::optional<std::uint8_t> same_level(Bytes bytes, std::int64_t encoding, unsigned deepest,
                                       std::uint64_t count) {
  if (encoding == kBitPacked) return std::nullopt;
  const auto level = Hybrid(bytes, static_cast<unsigned>(std::bit_width(deepest))).take_run(count);
  if (!level || *level > deepest) return std::nullopt;
  return static_cast<std::uint8_t>(*level);
}

}  // namespace stoker::formats
