// The page index of a column chunk, from untrusted bytes: the offset, rows and statistics of each page.
// Thread-safe: no state. Layout: https://parquet.apache.org/docs/file-format/pageindex
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parquet/schema/footer.h"

namespace stoker::parquet {

/// Rows [begin, end) of a row group.
struct RowRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct IndexedPage {
  std::uint64_t offset = 0;  ///< of its header in the file
  std::uint64_t bytes = 0;   ///< with the header
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  /// As stored, unchecked.
  ParquetStatistics statistics;
};

/// Parses the index of a row group with `rows` rows. Empty if it is inconsistent: pages out of order, outside
/// the chunk, or not all rows. With empty `columns`, the pages have no statistics.
std::vector<IndexedPage> read_page_index(std::span<const std::byte> offsets,
                                         std::span<const std::byte> columns, const ParquetChunk& chunk,
                                         std::uint64_t rows);

/// For each page whether it has a row in `wanted`, which must ascend.
std::vector<bool> select_pages(std::span<const IndexedPage> pages, std::span<const RowRange> wanted);

}  // namespace stoker::parquet
