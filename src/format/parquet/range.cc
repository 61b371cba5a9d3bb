// Statistics of row groups and pages, where they can be relied on, and what is passed over by them.
#include <algorithm>
#include <bit>
#include <cmath>

#include "format/load.h"
#include "format/parquet/columns/convert.h"
#include "format/parquet/columns/leaf_reader.h"
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
  if (of.chunks[leaf].type != footer_.leaves[leaf].layout.stored.type) return std::nullopt;
  return range_in(leaf, of.chunks[leaf].statistics, of.rows);
}

std::optional<ParquetRange> ParquetFile::range_in(std::size_t leaf, const ParquetStatistics& said,
                                                  std::uint64_t rows) const {
  const SchemaLeaf& is = footer_.leaves[leaf];
  if (is.is.type == Type::other) return std::nullopt;
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
                           static_cast<std::uint64_t>(*said.missing) <= rows;
  if (counts_rows) range.missing = static_cast<std::uint64_t>(*said.missing);
  if (!range.least && !range.missing) return std::nullopt;
  return range;
}

// The whole index of a row group's leaf; empty where it is none that can be used.
Result<std::vector<IndexedPage>> ParquetFile::page_index(std::size_t group, std::size_t leaf) const {
  constexpr std::int64_t kLargest = 64 << 20;
  const ParquetGroup& of = footer_.groups[group];
  const ParquetChunk& chunk = of.chunks[leaf];
  const auto bytes_of = [&](const ParquetPlace& place) -> Result<std::vector<std::byte>> {
    const bool is_there =
        place.bytes > 0 && place.bytes <= kLargest && place.offset > 0 &&
        static_cast<std::uint64_t>(place.offset) <= size_ &&
        static_cast<std::uint64_t>(place.bytes) <= size_ - static_cast<std::uint64_t>(place.offset);
    std::vector<std::byte> bytes(is_there ? static_cast<std::size_t>(place.bytes) : 0);
    if (!is_there) return bytes;
    RETURN_IF_ERROR(read_(static_cast<std::uint64_t>(place.offset), bytes));
    return bytes;
  };
  if (leaves_[leaf].lists > 0 || !check_chunk(chunk, leaf).ok() || footer_.has_short_chunks)
    return std::vector<IndexedPage>();
  OK_OR_RETURN(offsets, bytes_of(chunk.offset_index));
  if (offsets.empty()) return std::vector<IndexedPage>();
  OK_OR_RETURN(columns, bytes_of(chunk.column_index));
  return read_page_index(offsets, columns, chunk, of.rows);
}

Result<std::vector<ParquetFile::PageRows>> ParquetFile::pages(std::size_t group, std::size_t leaf) const {
  OK_OR_RETURN(found, page_index(group, leaf));
  std::vector<PageRows> pages;
  for (const IndexedPage& page : found) {
    pages.push_back({.rows = {page.first_row, page.first_row + page.rows},
                     .range = range_in(leaf, page.statistics, page.rows)});
  }
  return pages;
}

Result<std::uint64_t> ParquetFile::read_rows(std::size_t group, std::size_t leaf,
                                             std::span<const RowRange> rows, ParquetValues& values) const {
  const bool are_all = rows.size() == 1 && rows[0].begin == 0 && rows[0].end >= this->rows(group);
  std::vector<IndexedPage> pages;
  if (!are_all) {
    OK_OR_RETURN(found, page_index(group, leaf));
    pages = std::move(found);
  }
  const std::vector<bool> are_wanted = pages_with(pages, rows);
  const auto passed_over = static_cast<std::uint64_t>(std::ranges::count(are_wanted, false));
  if (passed_over > 0) {
    const ParquetGroup& of = footer_.groups[group];
    const std::string subject = shown(leaf);
    std::uint64_t left = ParquetLimits().values.value;
    const Status read = read_leaf_pages({of.chunks[leaf], footer_.leaves[leaf], of.rows, subject, &left},
                                        {read_, pages, are_wanted}, values);
    if (read.ok()) return passed_over;
    if (read.code() != Code::corrupt) return read;
  }
  // Also where the index does not fit the pages: if these are damaged, this says how.
  RETURN_IF_ERROR(read_leaf(group, leaf, values));
  return std::uint64_t{0};
}

}  // namespace stoker::formats
