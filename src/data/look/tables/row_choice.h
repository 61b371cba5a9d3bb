// The rows of a Parquet file that a condition chooses, one row group at a time. Used where tables are
// unpacked or indexed. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "data/look/tables/paths/table_file.h"
#include "data/look/tables/row_filter.h"
#include "data/look/tables/table_options.h"

namespace stoker::data {

/// Of the condition `where`, if there is one. Errors begin with `subject`.
Result<std::optional<RowFilter>> filter_of(const TableFile& file, const std::string& where,
                                           const std::string& subject);

struct GroupChoice {
  bool is_read = false;             ///< else no row of it can be chosen
  std::vector<std::uint64_t> rows;  ///< ascending
  std::vector<formats::ParquetValues>
      compared;  ///< of each of the filter's leaves, of chosen rows at least; empty unless there are such
  std::uint64_t pages_passed_over = 0;  ///< of these leaves
};
Result<GroupChoice> choose_rows(const TableFile& file, const RowFilter& filter, std::size_t group);

/// Of ascending rows those that follow each other together.
std::vector<formats::RowRange> ranges_of(std::span<const std::uint64_t> rows);

/// The numbers of all rows that are chosen, ascending; what was read for it is added to `facts`. Cancelled
/// when `progress` says stop.
Result<std::vector<std::uint64_t>> chosen_rows(const TableFile& file, const RowFilter& filter,
                                               const std::string& subject, TableFacts& facts,
                                               const Progress& progress);

}  // namespace stoker::data
