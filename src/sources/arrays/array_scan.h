// Scans samples in an HDF5 or Zarr file with arrays: docs/formats/sample-arrays.md. Used to index foreign
// shards, and as a source of pack. Thread-safe: no state.
#pragma once

#include <string>

#include "base/file.h"
#include "sources/arrays/npy_sets.h"
#include "sources/shard_scan.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// The places of a file's samples, like scan_shard(). `stem` prefixes the keys of samples without one.
/// Invalid, with a cure, if the bytes are not contiguous (compressed, in chunks).
Result<ShardScan> scan_arrays(const Path& file, const std::string& stem);

/// The same for packed bytes, or for arrays with one row per sample: places are offsets in the unpacked bytes
/// of the chunks. Also for a Zarr store in a folder.
Result<ShardScan> scan_chunks(const Path& file, const std::string& stem);

/// The same for any readable file: unpacks its bytes into an unnamed file in `scratch`. Cancelled on
/// stop_requested(), NoSpace before the disk is full.
Result<UnpackedShard> unpack_arrays(const Path& file, const std::string& stem, const Path& scratch,
                                    Progress& progress);

/// Rows of arrays in NumPy files, in place. Invalid, with a cure, if they cannot be read in place.
Result<ShardScan> scan_npy(const Path& folder, const arrays::NpySet& set);
/// The same for all readable files, unpacked like in unpack_arrays().
Result<UnpackedShard> unpack_npy(const Path& folder, const arrays::NpySet& set, const Path& scratch,
                                 Progress& progress);

}  // namespace stoker::sources
