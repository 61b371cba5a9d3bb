// Selects the rows of a Parquet file that match a condition, one row group at a time. Used to unpack and
// index tables. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sources/table_options.h"
#include "sources/tables/filter/row_filter.h"
#include "sources/tables/table_file.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// The filter for the condition `where`, if any. Errors begin with `subject`.
Result<std::optional<RowFilter>> parse_filter(const TableFile& file, const std::string& where,
                                              const std::string& subject);

struct GroupSelection {
  bool is_read = false;                          ///< false: no row of the group can match
  std::vector<std::uint64_t> rows;               ///< ascending
  std::vector<parquet::ParquetValues> compared;  ///< values of each of the filter's leaves, at least for
                                                 ///< selected rows; empty without such rows
  std::uint64_t pages_pruned = 0;                ///< of these leaves
};
Result<GroupSelection> select_rows(const TableFile& file, const RowFilter& filter, std::size_t group);

/// Merges ascending rows into ranges.
std::vector<parquet::RowRange> ranges_of(std::span<const std::uint64_t> rows);

/// The numbers of all matching rows, ascending; adds to `facts`. Cancelled on stop_requested().
Result<std::vector<std::uint64_t>> selected_rows(const TableFile& file, const RowFilter& filter,
                                                 const std::string& subject, TableFacts& facts,
                                                 const Progress& progress);

}  // namespace stoker::sources
