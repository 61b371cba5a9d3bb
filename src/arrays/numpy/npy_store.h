// NumPy files (.npy, .npz) whose rows belong together, as a row store. Used where foreign shards are scanned.
// Blocks on the storage. Thread-safe: no state.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arrays/samples/store.h"
#include "base/file.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::arrays {

/// A shard.
struct NpySet {
  struct Array {
    std::string name;
    std::string file;
    std::string member;  ///< of an archive
  };
  std::string file;  ///< names the shard: its first file
  std::string split;
  std::string stem;  ///< prefix of the keys of its samples
  std::vector<Array> arrays;
};

/// In place: Invalid, with a cure, for compressed arrays of an archive.
Result<std::unique_ptr<SampleArrays::Store>> open_npy_store(const Path& folder, const NpySet& set);

/// Unpacks compressed members into unnamed files in `scratch`. Cancelled on stop_requested(), NoSpace before
/// the disk is full.
Result<std::unique_ptr<SampleArrays::Store>> unpack_npy_store(const Path& folder, const NpySet& set,
                                                              const Path& scratch, Progress& progress);

}  // namespace stoker::arrays
