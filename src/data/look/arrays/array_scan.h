// The samples of an HDF5 or Zarr file that holds them as arrays: docs/formats/sample-arrays.md. Used to index
// foreign shards, and as a source of pack. Thread-safe: no state.
#pragma once

#include <string>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "data/look/arrays/numpy/npy_sets.h"
#include "data/look/shard_scan.h"

namespace stoker::data {

/// The places of a file's samples, as scan_shard() gives them. `stem` begins the keys of samples that have
/// none. Invalid, with a cure, for one whose bytes lie nowhere as they are (compressed, in chunks).
Result<ShardScan> scan_arrays(const Path& file, const std::string& stem);

/// The same of one whose bytes are packed, or whose arrays have a row for each sample: its places are those
/// among the unpacked bytes of its chunks. A Zarr store in a folder is such, too.
Result<ShardScan> scan_chunks(const Path& file, const std::string& stem);

/// The same of any that can be read: its bytes are unpacked into a file in `scratch` without a name.
/// Cancelled when `progress` says stop, NoSpace before the disk is full.
Result<UnpackedShard> unpack_arrays(const Path& file, const std::string& stem, const Path& scratch,
                                    Progress& progress);

/// Rows of arrays in NumPy's files, where they lie. Invalid, with a cure, for what cannot be read there.
Result<ShardScan> scan_npy(const Path& folder, const NpySet& set);
/// The same of all that can be read, as unpack_arrays() does it.
Result<UnpackedShard> unpack_npy(const Path& folder, const NpySet& set, const Path& scratch,
                                 Progress& progress);

}  // namespace stoker::data
