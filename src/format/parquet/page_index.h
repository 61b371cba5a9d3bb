// The pages of a column chunk as the index beside the row groups tells them: where each lies, which rows it
// has, and between which values they are. From bytes that nobody vouches for. Thread-safe: no state. Layout:
// https://parquet.apache.org/docs/file-format/pageindex
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/parquet/footer.h"

namespace stoker::formats {

/// Rows of a row group, from the first up to that before the end.
struct RowRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct IndexedPage {
  std::uint64_t offset = 0;  ///< of its header in the file
  std::uint64_t bytes = 0;   ///< with it
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  /// As the file says it: nothing is checked.
  ParquetStatistics statistics;
};

/// Of a row group of so many rows. Empty for what does not hold: pages that are not one behind another in the
/// chunk, or not all of its rows. `columns` may be empty, then nothing is said of values.
std::vector<IndexedPage> read_page_index(std::span<const std::byte> offsets,
                                         std::span<const std::byte> columns, const ParquetChunk& chunk,
                                         std::uint64_t rows);

/// For each page whether one of its rows is in `wanted`, which are ascending.
std::vector<bool> pages_with(std::span<const IndexedPage> pages, std::span<const RowRange> wanted);

}  // namespace stoker::formats
