// Scans a Parquet file: a row is a sample, its columns of bytes are the files. Our files have `__key__` and
// `cls`; in other files image, label and key follow the rules for TFRecord. Used to index foreign shards, and
// as a source of pack. An integer partition key is a column like any other. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "archive/tar.h"
#include "base/file.h"
#include "sources/shard_scan.h"
#include "sources/tables/table_file.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// Prefix of messages, and of the keys of rows without one.
struct ScanNames {
  std::string subject;
  std::string stem;
};

/// Rows of a file, ascending; nullopt: all.
using SelectedRows = std::optional<std::vector<std::uint64_t>>;

/// The places of a file's values, like scan_shard(). An empty value is an empty file, null is none. Invalid
/// if values are not contiguous (compressed, dictionaries), or a row without bytes.
Result<ShardScan> scan_parquet(const TableFile& table, const SelectedRows& rows, const archive::ReadAt& read,
                               const ScanNames& names);

/// The same for a packed file: places are offsets in the unpacked bytes of its pages. `shard` is the file.
Result<ShardScan> scan_packed_parquet(const TableFile& table, const SelectedRows& rows,
                                      const codec::ShardFile& shard, const ScanNames& names);

/// The same for all rows of any readable file: unpacks its values into `out`, a new file; places are offsets
/// in it. Cancelled on stop_requested().
Result<ShardScan> unpack_parquet(const TableFile& table, const ScanNames& names, File& out,
                                 Progress& progress);

/// Whether rows are samples rather than paths: one of our files, a column of images, or only numbers.
Result<bool> holds_samples(const Path& file);

}  // namespace stoker::sources
