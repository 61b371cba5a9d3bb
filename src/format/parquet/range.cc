// Statistics of a row group, where they can be relied on.
#include <bit>
#include <cmath>

#include "format/load.h"
#include "format/parquet/columns/convert.h"
#include "format/parquet/parquet.h"

namespace stoker::formats {

namespace {

using Type = ParquetLeaf::Type;

bool is_nan(std::span<const std::byte> number, Type type) {
  if (type == Type::float32) return std::isnan(load<float>(number, 0));
  if (type == Type::float64) return std::isnan(load<double>(number, 0));
  if (type != Type::float16) return false;
  constexpr unsigned kMagnitude = 0x7FFF, kInfinity = 0x7C00;
  return (load<std::uint16_t>(number, 0) & kMagnitude) > kInfinity;
}

// Whether a number of 32 bits means the same in the fewer that its type has.
bool fits(std::span<const std::byte> stored, Type type) {
  const auto number = load<std::int32_t>(stored, 0);
  switch (type) {
    case Type::int8:
      return number == static_cast<std::int8_t>(number);
    case Type::uint8:
      return number == static_cast<std::uint8_t>(number);
    case Type::int16:
      return number == static_cast<std::int16_t>(number);
    case Type::uint16:
      return number == static_cast<std::uint16_t>(number);
    default:
      return true;
  }
}

// A bound as the file has it, as readers get it; nothing for one that is none.
std::optional<std::string> bound(const SchemaLeaf& leaf, const std::optional<std::string>& stored) {
  if (!stored || leaf.is.type == Type::bytes) return stored;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(*stored));
  const StoredType& how = leaf.layout.stored;
  const std::string_view text(*stored);
  StoredValues value;
  if (how.is_bytes()) {
    if (how.width > 0 && stored->size() != how.width) return std::nullopt;
    value.texts = std::span(&text, 1);
  } else {
    if (bytes.size() != how.number_bytes()) return std::nullopt;
    if (how.type == kParquetInt32 && !fits(bytes, leaf.is.type)) return std::nullopt;
    if (how.type == kParquetBoolean && static_cast<unsigned>(bytes[0]) > 1) return std::nullopt;
    if (is_stored_as_it_is(leaf)) return is_nan(bytes, leaf.is.type) ? std::nullopt : stored;
    value.numbers = bytes;
  }
  std::vector<std::byte> number(byte_width(leaf.is.type));
  if (!convert_numbers(leaf, value, number.data()) || is_nan(number, leaf.is.type)) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(number.data()), number.size());
}

}  // namespace

std::optional<ParquetRange> ParquetFile::range_of(std::size_t group, std::size_t leaf) const {
  const ParquetGroup& of = footer_.groups[group];
  const ParquetChunk& chunk = of.chunks[leaf];
  const SchemaLeaf& is = footer_.leaves[leaf];
  const ParquetStatistics& said = chunk.statistics;
  if (chunk.type != is.layout.stored.type || is.is.type == Type::other) return std::nullopt;
  ParquetRange range;
  if (is.layout.has_order && footer_.has_order[leaf]) {
    range.least = bound(is, said.least);
    range.most = bound(is, said.most);
  }
  if (is.layout.has_old_order) {
    if (!range.least) range.least = bound(is, said.old_least);
    if (!range.most) range.most = bound(is, said.old_most);
  }
  // One of them alone was compared with a NaN, or is damaged.
  if (!range.least || !range.most) {
    range.least.reset();
    range.most.reset();
  }
  const bool counts_rows = is.is.lists == 0 && said.missing && *said.missing >= 0 &&
                           static_cast<std::uint64_t>(*said.missing) <= of.rows;
  if (counts_rows) range.missing = static_cast<std::uint64_t>(*said.missing);
  if (!range.least && !range.missing) return std::nullopt;
  return range;
}

}  // namespace stoker::formats
