// Chunked arrays for a table's rows that are read in place: one chunk per column of a row group. Used by
// table_scan. Thread-compatible. Layout: docs/formats/index.md#tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codec/chunks/chunk_map.h"
#include "parquet/parquet.h"
#include "sources/shard_scan.h"
#include "sources/tables/table_file.h"
#include "sources/tables/table_plan.h"
#include "stoker/status.h"

namespace stoker::sources {

class TableLayout {
 public:
  /// All arguments must outlive it. REQUIRES: a plan without files of bytes.
  TableLayout(const TableFile& file, const TablePlan& plan, const std::string& subject)
      : file_(file), plan_(plan), subject_(subject) {}

  /// Call before placing the rows of a row group; `values` has its leaves. Invalid for lists of
  /// different lengths, and for too many arrays.
  Status begin_group(std::span<const parquet::ParquetValues> values);
  /// Sets the places of the sample's arrays; `row` is the number in the file.
  void place(ShardSample& sample, std::uint64_t row) const;
  /// The arrays after the last row. Fails like ChunkMap::create().
  Result<codec::ChunkMap> finish(std::uint64_t shard_bytes);

 private:
  // Consecutive row groups with the same number of rows, except the last.
  struct Run {
    parquet::ParquetFile::Groups groups;
    std::uint64_t first_row = 0;
    std::uint64_t rows = 0;
    std::vector<std::uint64_t> begins;  // of each of the plan's arrays
  };

  Status place_arrays(std::span<const parquet::ParquetValues> values);
  void find_runs();
  Status check_even(std::span<const parquet::ParquetValues> values) const;
  Status add(const TablePlan::Array& array, std::size_t number, Run& run);
  Status not_in_place(std::string_view why) const;

  const TableFile& file_;
  const TablePlan& plan_;
  const std::string& subject_;
  std::vector<codec::Extents> rows_;  // sizes of each of the plan's arrays
  std::vector<std::string> heads_;
  std::vector<Run> runs_;
  std::vector<codec::ChunkedArray> arrays_;
  std::uint64_t end_ = 0;  // of the arrays so far
};

}  // namespace stoker::sources
