// Groups arrays of NumPy files (.npy, .npz) whose rows belong together: one shard each. Splits and arrays are
// parsed from the names. Used to find shards, by data index and by pack. Blocks on the storage: opens
// archives. Thread-safe: no state. Rules: docs/formats/sample-arrays.md#numpys-files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "arrays/numpy/npy_store.h"
#include "base/file.h"
#include "stoker/status.h"

namespace stoker::sources {

/// The shards among `files`, by name. Invalid if there are both .npy and .npz files, if shards have different
/// arrays, or for archives without arrays; Corrupt for damaged archives.
Result<std::vector<arrays::NpySet>> npy_sets(const Path& folder, const std::vector<std::string>& files);

/// The same for reading in place, one set per file. Invalid, with a cure, for an archive with several splits.
Result<std::vector<arrays::NpySet>> npy_shards(const Path& folder, const std::vector<std::string>& files);

}  // namespace stoker::sources
