// The samples of a Parquet file: a row is one, its columns of bytes are the files. Ours have `__key__` and
// `cls`; in others' the image, label and key are told by the rules that TFRecord has. Used to index foreign
// shards, and as a source of pack. A whole number of the path is a column like others. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "data/look/shard_scan.h"
#include "data/look/tables/paths/table_file.h"
#include "format/tar.h"

namespace stoker::data {

/// The places of a file's values, as scan_shard() gives them. `stem` begins the keys of rows that have none.
/// Invalid for a file whose values lie nowhere by themselves (compressed, dictionaries), or without bytes.
Result<ShardScan> scan_parquet(const TableFile& table, const formats::ReadAt& read,
                               const std::string& subject, const std::string& stem);

/// The same of a packed file: places are those among the unpacked bytes of its pages. `shard` is the file.
Result<ShardScan> scan_packed_parquet(const TableFile& table, const formats::ShardFile& shard,
                                      const std::string& subject, const std::string& stem);

/// The same of any file that can be read: its values are unpacked into `out`, a new file, one after another,
/// and places are in that. A value without bytes counts for none. Cancelled when `progress` says stop.
Result<ShardScan> unpack_parquet(const TableFile& table, const std::string& subject, const std::string& stem,
                                 File& out, Progress& progress);

/// Whether rows hold samples rather than paths of files: it is one of ours, or the first value of a column is
/// an image, or there are numbers only.
Result<bool> holds_samples(const Path& file);

}  // namespace stoker::data
