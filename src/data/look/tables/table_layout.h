// Where the arrays of a table's rows lie, if they are read from its columns as these lie: each a row of an
// array in chunks, one chunk for a column of a row group. Used by table_scan. Thread-compatible.
// Layout: docs/formats/index.md#tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/look/shard_scan.h"
#include "data/look/tables/paths/table_file.h"
#include "data/look/tables/table_plan.h"
#include "format/chunked/chunk_map.h"
#include "format/parquet/parquet.h"

namespace stoker::data {

class TableLayout {
 public:
  /// All must outlive it. REQUIRES: a plan without files of bytes.
  TableLayout(const TableFile& file, const TablePlan& plan, const std::string& subject)
      : file_(file), plan_(plan), subject_(subject) {}

  /// Before the first row of a row group is placed; `values` are those of its leaves. Invalid for lists that
  /// are not all of one length, and for what is too much to be described.
  Status begin_group(std::span<const formats::ParquetValues> values);
  /// Gives the sample's arrays their places; `row` counts from the file's first.
  void place(ShardSample& sample, std::uint64_t row) const;
  /// The arrays, once all is placed. Fails as ChunkMap::create().
  Result<formats::ChunkMap> finish(std::uint64_t shard_bytes);

 private:
  // Row groups one behind another of the same number of rows, but for the last.
  struct Run {
    formats::ParquetFile::Groups groups;
    std::uint64_t first_row = 0;
    std::uint64_t rows = 0;
    std::vector<std::uint64_t> begins;  // of each of the plan's arrays
  };

  Status lay_out(std::span<const formats::ParquetValues> values);
  void find_runs();
  Status check_even(std::span<const formats::ParquetValues> values) const;
  Status add(const TablePlan::Array& array, std::size_t number, Run& run);
  Status not_in_place(std::string_view why) const;

  const TableFile& file_;
  const TablePlan& plan_;
  const std::string& subject_;
  std::vector<formats::Extents> rows_;  // sizes of each of the plan's arrays
  std::vector<std::string> heads_;
  std::vector<Run> runs_;
  std::vector<formats::ChunkedArray> arrays_;
  std::uint64_t end_ = 0;  // of the arrays so far
};

}  // namespace stoker::data
