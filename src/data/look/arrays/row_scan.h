// The samples of a shard whose arrays have a row for each: images of pixels, labels, tables. Of HDF5, Zarr
// and NumPy's files. Used by array_scan, for data index, pack and convert. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "data/look/shard_scan.h"
#include "format/samples/rows.h"

namespace stoker::data {

struct RowSource {
  const formats::RowArrays& arrays;
  const Path& path;         ///< of the shard
  const std::string& stem;  ///< begins the keys of samples
};

/// The arrays of an HDF5 or Zarr file.
Result<formats::RowArrays> open_rows(const Path& file);

/// Each row of each array as a .npy file among the unpacked bytes of `arrays`, which it adds; `parts` are the
/// files among which these lie, where the store is a folder. Keys and labels are those of unpack_rows().
struct RowChunks {
  std::vector<formats::ChunkedArray> arrays;
  std::vector<formats::ShardPart> parts;
};
Result<ShardScan> scan_rows(const RowSource& source, RowChunks& chunks);

/// Writes each row of each array as a .npy file into a file in `scratch` without a name, and gives their
/// places. The one list of whole numbers whose name ends in `label` or `labels`, or is `y` or `targets`, is
/// the label. Cancelled when `progress` says stop, NoSpace before the disk is full.
Result<UnpackedShard> unpack_rows(const RowSource& source, const Path& scratch, Progress& progress);

}  // namespace stoker::data
