// The samples of a Parquet table: chosen rows, whose columns are files, arrays, label and key. Values are
// unpacked into a file, one row group at a time; groups that have no chosen row are not read. Used as a
// source of pack. Thread-safe: no state.
#pragma once

#include <string>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "data/look/shard_scan.h"
#include "data/look/tables/paths/table_file.h"
#include "data/look/tables/table_options.h"
#include "format/parquet/parquet.h"

namespace stoker::data {

struct TableSource {
  const TableFile& file;
  std::string subject;  ///< begins messages
  std::string stem;     ///< begins the keys of rows that have none
};

/// Samples whose places are in `out`, a new file. A text label is a number among the scan's `classes`.
/// Invalid for options that do not fit the columns and for values that make no array; Cancelled when
/// `progress` says stop.
Result<ShardScan> unpack_rows(const TableSource& table, const TableOptions& options, File& out,
                              Progress& progress);

/// The same of a table of numbers as it lies, in a file of so many bytes: places are among the unpacked bytes
/// of its columns' chunks, and nothing is written. Invalid for columns of bytes, and for lists of different
/// lengths.
Result<ShardScan> scan_rows(const TableSource& table, std::uint64_t shard_bytes, const TableOptions& options,
                            const Progress& progress);

/// Whether a file has columns of numbers or lists, and none of bytes or text: nothing but unpack_rows() makes
/// samples of it.
bool has_numbers_only(const formats::ParquetFile& file);

}  // namespace stoker::data
