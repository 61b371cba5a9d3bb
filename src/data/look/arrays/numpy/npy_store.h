// The arrays of a shard of NumPy's files as a store of rows. Used by array_scan. Blocks on the storage.
#pragma once

#include <memory>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "data/look/arrays/numpy/npy_sets.h"
#include "format/samples/store.h"

namespace stoker::data {

/// Where they lie: Invalid, with a cure, for arrays that an archive has compressed.
Result<std::unique_ptr<formats::SampleArrays::Store>> open_npy_store(const Path& folder, const NpySet& set);

/// Members that are compressed are unpacked into files in `scratch` without names. Cancelled when `progress`
/// says stop, NoSpace before the disk is full.
Result<std::unique_ptr<formats::SampleArrays::Store>> unpack_npy_store(const Path& folder, const NpySet& set,
                                                                       const Path& scratch,
                                                                       Progress& progress);

}  // namespace stoker::data
