// The arrays of a NumPy shard as a row store. Used by array_scan. Blocks on the storage.
#pragma once

#include <memory>

#include "arrays/samples/store.h"
#include "base/file.h"
#include "sources/arrays/numpy/npy_sets.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// In place: Invalid, with a cure, for compressed arrays of an archive.
Result<std::unique_ptr<arrays::SampleArrays::Store>> open_npy_store(const Path& folder, const NpySet& set);

/// Unpacks compressed members into unnamed files in `scratch`. Cancelled on stop_requested(), NoSpace before
/// the disk is full.
Result<std::unique_ptr<arrays::SampleArrays::Store>> unpack_npy_store(const Path& folder, const NpySet& set,
                                                                      const Path& scratch,
                                                                      Progress& progress);

}  // namespace stoker::sources
