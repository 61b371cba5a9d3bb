// The samples of a Parquet table: selected rows, whose columns are files, arrays, label and key. Unpacks
// values into a file, one row group at a time; skips groups without a matching row. Used as a source of pack.
// Thread-safe: no state.
#pragma once

#include <string>

#include "base/file.h"
#include "parquet/parquet.h"
#include "sources/shard_scan.h"
#include "sources/table_options.h"
#include "sources/tables/table_file.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

struct TableSource {
  const TableFile& file;
  std::string subject;  ///< prefix of messages
  std::string stem;     ///< prefix of the keys of rows without one
};

/// Samples with places in `out`, a new file. A text label is an index into the scan's `classes`. Invalid for
/// options that do not fit the columns and for values that cannot become arrays; Cancelled on
/// stop_requested().
Result<ShardScan> unpack_rows(const TableSource& table, const TableOptions& options, File& out,
                              Progress& progress);

/// The same for a table of numbers in place, in a file of `shard_bytes`: places are offsets in the unpacked
/// bytes of its columns' chunks. Invalid for columns of bytes, and for lists of different lengths.
Result<ShardScan> scan_rows(const TableSource& table, std::uint64_t shard_bytes, const TableOptions& options,
                            const Progress& progress);

/// Whether a file has columns of numbers or lists but none of bytes or text, so that only unpack_rows() can
/// make samples.
bool has_numbers_only(const parquet::ParquetFile& file);

}  // namespace stoker::sources
