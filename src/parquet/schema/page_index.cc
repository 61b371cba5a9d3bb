#include "parquet/schema/page_index.h"

#include <algorithm>

#include "parquet/thrift/thrift.h"

namespace stoker::parquet {

namespace {

using Field = ThriftReader::Field;
using Wire = ThriftReader::Type;

constexpr std::size_t kMaxPages = 1u << 18;

IndexedPage read_location(ThriftReader& reader) {
  IndexedPage page;
  reader.structure([&](const Field& field) {
    std::uint64_t* const into = field.id == 1   ? &page.offset
                                : field.id == 2 ? &page.bytes
                                : field.id == 3 ? &page.first_row
                                                : nullptr;
    if (into == nullptr || !is_integer(field)) return false;
    *into = static_cast<std::uint64_t>(reader.integer());  // negative numbers become too large
    return true;
  });
  return page;
}

std::vector<IndexedPage> read_locations(std::span<const std::byte> bytes) {
  std::vector<IndexedPage> pages;
  ThriftReader reader(bytes);
  reader.structure([&](const Field& field) {
    if (field.id != 1 || field.type != Wire::list) return false;
    reader.list(Wire::structure, [&] {
      IndexedPage page = read_location(reader);
      if (pages.size() <= kMaxPages) pages.push_back(std::move(page));
    });
    return true;
  });
  if (reader.is_damaged() || pages.size() > kMaxPages) pages.clear();
  return pages;
}

// Computes rows; false unless pages are in order, inside the chunk, and cover all rows.
bool measure(std::vector<IndexedPage>& pages, const ParquetChunk& chunk, std::uint64_t rows) {
  if (pages.empty() || chunk.begin < 0 || chunk.bytes < 0 || pages[0].first_row != 0) return false;
  auto begin = static_cast<std::uint64_t>(chunk.begin);
  const std::uint64_t end = begin + static_cast<std::uint64_t>(chunk.bytes);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    IndexedPage& page = pages[i];
    const std::uint64_t next = i + 1 < pages.size() ? pages[i + 1].first_row : rows;
    const bool is_inside = page.offset >= begin && page.offset <= end && page.bytes <= end - page.offset;
    if (!is_inside || page.first_row >= next || next > rows) return false;
    page.rows = next - page.first_row;
    begin = page.offset + page.bytes;
  }
  return true;
}

// False for lists that are not as long as there are pages.
bool read_columns(std::span<const std::byte> bytes, std::vector<IndexedPage>& pages) {
  std::vector<bool> are_missing;
  std::vector<std::string> min;
  std::vector<std::string> max;
  std::vector<std::int64_t> missing;
  const std::size_t count = pages.size();
  const auto keep = [count](auto& list, auto value) {  // one more than expected is enough to fail
    if (list.size() <= count) list.push_back(std::move(value));
  };
  ThriftReader reader(bytes);
  reader.structure([&](const Field& field) {
    if (field.type != Wire::list) return false;
    if (field.id == 1) {
      reader.flags([&](bool flag) { keep(are_missing, flag); });
    } else if (field.id == 2) {
      reader.list(Wire::binary, [&] { keep(min, reader.text()); });
    } else if (field.id == 3) {
      reader.list(Wire::binary, [&] { keep(max, reader.text()); });
    } else if (field.id == 5) {
      reader.list(Wire::i64, [&] { keep(missing, reader.integer()); });
    } else {
      return false;
    }
    return true;
  });
  const bool holds = !reader.is_damaged() && are_missing.size() == count && min.size() == count &&
                     max.size() == count && (missing.empty() || missing.size() == count);
  for (std::size_t i = 0; holds && i < count; ++i) {
    ParquetStatistics& statistics = pages[i].statistics;
    if (!missing.empty()) statistics.null_count = missing[i];
    if (are_missing[i]) statistics.null_count = static_cast<std::int64_t>(pages[i].rows);
    if (are_missing[i]) continue;
    statistics.min = std::move(min[i]);
    statistics.max = std::move(max[i]);
  }
  return holds;
}

}  // namespace

std::vector<IndexedPage> read_page_index(std::span<const std::byte> offsets,
                                         std::span<const std::byte> columns, const ParquetChunk& chunk,
                                         std::uint64_t rows) {
  std::vector<IndexedPage> pages = read_locations(offsets);
  const bool holds = measure(pages, chunk, rows) && (columns.empty() || read_columns(columns, pages));
  if (!holds) pages.clear();
  return pages;
}

std::vector<bool> select_pages(std::span<const IndexedPage> pages, std::span<const RowRange> wanted) {
  std::vector<bool> is_selected;
  auto range = wanted.begin();
  for (const IndexedPage& page : pages) {
    while (range != wanted.end() && range->end <= page.first_row) ++range;
    is_selected.push_back(range != wanted.end() && range->begin < page.first_row + page.rows);
  }
  return is_selected;
}

}  // namespace stoker::parquet
