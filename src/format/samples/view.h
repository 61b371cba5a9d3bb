// One HDF5 file over several with samples as arrays (layout.h): its `bytes` is a virtual dataset of theirs,
// one behind another, its places and labels are those of all. h5py opens it as one; no library is needed to
// write it. Used by pack and by index builders. Layout: docs/formats/sample-arrays.md.
#pragma once

#include <span>
#include <string>

#include "base/file.h"
#include "base/status.h"
#include "format/side_index.h"

namespace stoker::formats {

/// A shard that our pack wrote, and its section of the index.
struct ViewedShard {
  std::string file;  ///< from the folder of the view
  const IndexSection* section = nullptr;
};

/// Writes `folder / name` whole, by rename; deterministic. Invalid for shards that another tool has written,
/// whose places the index does not tell. The kinds of files are those of all shards.
Status write_hdf5_view(const Path& folder, const std::string& name, std::span<const ViewedShard> shards);

}  // namespace stoker::formats
