// One HDF5 file over several shards with samples as arrays (layout.h): `bytes` is a virtual dataset over
// their `bytes`, and offsets and labels are combined. h5py opens it as one file; writing it needs no library.
// Used by pack and by index builders. Layout: docs/formats/sample-arrays.md.
#pragma once

#include <span>
#include <string>

#include "base/file.h"
#include "dataset/side_index.h"
#include "stoker/status.h"

namespace stoker::dataset {

/// A shard written by Stoker's pack, and its section of the index.
struct ViewedShard {
  std::string file;  ///< relative to the folder of the view
  const IndexSection* section = nullptr;
};

/// Writes `folder / name` atomically by rename; deterministic. Invalid for shards of other tools, because the
/// index does not hold their offsets. The components of all shards are combined.
Status write_hdf5_view(const Path& folder, const std::string& name, std::span<const ViewedShard> shards);

}  // namespace stoker::dataset
