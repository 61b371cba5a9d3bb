// Scans shards with one array row per sample (pixels, labels, tables), in HDF5, Zarr and NumPy files. Used by
// array_scan, for data index, pack and convert. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "arrays/samples/rows.h"
#include "base/file.h"
#include "sources/shard_scan.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

struct RowSource {
  const arrays::RowArrays& arrays;
  const Path& path;         ///< of the shard
  const std::string& stem;  ///< prefix of the keys
};

/// The arrays of an HDF5 or Zarr file.
Result<arrays::RowArrays> open_rows(const Path& file);

/// Each row of each array as a .npy file in the unpacked bytes of `chunks.arrays`, which it fills; `parts`
/// are the concatenated files of a store in a folder. Keys and labels are like in unpack_rows().
struct RowChunks {
  std::vector<codec::ChunkedArray> arrays;
  std::vector<codec::ShardPart> parts;
};
Result<ShardScan> scan_rows(const RowSource& source, RowChunks& chunks);

/// Writes each row of each array as a .npy file into an unnamed file in `scratch`. The label is the only
/// integer array whose name ends in `label` or `labels`, or is `y`, `target` or `targets`. Cancelled on
/// stop_requested(), NoSpace before the disk is full.
Result<UnpackedShard> unpack_rows(const RowSource& source, const Path& scratch, Progress& progress);

}  // namespace stoker::sources
