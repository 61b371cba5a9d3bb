#include "parquet/pages/page.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/hashes/crc32.h"
#include "codec/filters/unpack.h"
#include "parquet/pages/rle_hybrid.h"

namespace stoker::parquet {

namespace {

using Bytes = std::span<const std::byte>;
using Field = ThriftReader::Field;
using Type = ThriftReader::Type;

// Reads the fields of one kind of page header: number of values and encoding, then levels, which differ
// between versions.
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

// Splits the first `count` bytes off; false if there are fewer.
bool split_front(Bytes& bytes, std::uint64_t count, Bytes& taken) {
  if (count > bytes.size()) return false;
  taken = bytes.first(count);
  bytes = bytes.subspan(count);
  return true;
}

// Levels of version 1: runs have their length before them.
bool split_levels(Bytes& bytes, std::int64_t encoding, unsigned max_level, std::uint64_t count,
                  Bytes& levels) {
  if (max_level == 0) return true;
  if (encoding == kBitPacked) return split_front(bytes, (count * std::bit_width(max_level) + 7) / 8, levels);
  std::uint32_t length = 0;
  Bytes head;
  if (!split_front(bytes, sizeof length, head)) return false;
  std::memcpy(&length, head.data(), sizeof length);
  return split_front(bytes, length, levels);
}

// The deprecated encoding of early writers: most significant bit first.
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

bool is_valid(const PageHeader& header, std::uint64_t available) {
  constexpr std::int64_t kMaxValues = std::int64_t{1} << 31;
  if (header.bytes < 0 || header.packed_bytes < 0 ||
      static_cast<std::uint64_t>(header.packed_bytes) > available) {
    return false;
  }
  if (header.type == kDictionaryPage || header.is_data()) {
    if (header.values < 0 || header.values > kMaxValues) return false;
  }
  const std::int64_t least = std::min(header.bytes, header.packed_bytes);
  return header.definition_bytes >= 0 && header.repetition_bytes >= 0 && header.definition_bytes <= least &&
         header.repetition_bytes <= least - header.definition_bytes;
}

Status crc_mismatch(std::string_view subject) {
  return corrupt("{}: a page's CRC-32 does not match its bytes", subject).cure("download the file again");
}

Result<PageParts> open_page(const Page& page, std::int64_t codec, MaxLevels max_level,
                            codec::RawBytes& buffer, std::string_view subject) {
  const PageHeader& header = page.header;
  PageParts parts;
  Bytes stored = page.stored;
  const auto damaged = [&] { return corrupt("{}: a page is damaged", subject); };
  if (header.type == kDataPage2) {
    const bool holds =
        split_front(stored, static_cast<std::uint64_t>(header.repetition_bytes), parts.repetition) &&
        split_front(stored, static_cast<std::uint64_t>(header.definition_bytes), parts.definition);
    if (!holds) return damaged();
  }
  parts.packed_at = page.stored.size() - stored.size();
  const std::size_t ahead = parts.packed_at;
  if (static_cast<std::size_t>(header.bytes) < ahead) return damaged();
  const std::size_t unpacked = static_cast<std::size_t>(header.bytes) - ahead;
  const auto page_codec =
      header.is_packed ? static_cast<codec::ParquetCodec>(codec) : codec::ParquetCodec::none;
  if (page_codec == codec::ParquetCodec::none && header.is_data() && stored.size() == unpacked) {
    parts.unpacked = stored;
  } else {
    buffer.resize(unpacked + kReadPadding);
    const auto into = std::span(buffer).first(unpacked);
    STOKER_RETURN_IF_ERROR(unpack_page(page_codec, stored, into, subject));
    parts.unpacked = into;
  }
  parts.values = parts.unpacked;
  if (header.type == kDataPage) {
    const auto count = static_cast<std::uint64_t>(header.values);
    const bool holds =
        split_levels(parts.values, header.repetition_encoding, max_level.repetition, count,
                     parts.repetition) &&
        split_levels(parts.values, header.definition_encoding, max_level.definition, count, parts.definition);
    if (!holds) return damaged();
  }
  return parts;
}

bool read_levels(Bytes bytes, std::int64_t encoding, unsigned max_level, std::uint64_t count,
                 std::vector<std::uint8_t>& levels) {
  const auto width = static_cast<unsigned>(std::bit_width(max_level));
  if (encoding == kBitPacked) {
    levels.clear();
    if (!read_bit_packed(bytes, width, count, levels)) return false;
  } else {
    levels.resize(count);
    if (!RleHybridDecoder(bytes, width).read(std::span(levels))) return false;
  }
  if (max_level + 1 == 1u << width) return true;  // no level can be larger
  std::uint8_t most = 0;
  for (const std::uint8_t level : levels) most = std::max(most, level);
  return most <= max_level;
}

std::optional<std::uint8_t> constant_level(Bytes bytes, std::int64_t encoding, unsigned max_level,
                                           std::uint64_t count) {
  if (encoding == kBitPacked) return std::nullopt;
  const auto level =
      RleHybridDecoder(bytes, static_cast<unsigned>(std::bit_width(max_level))).read_run(count);
  if (!level || *level > max_level) return std::nullopt;
  return static_cast<std::uint8_t>(*level);
}

}  // namespace stoker::parquet
