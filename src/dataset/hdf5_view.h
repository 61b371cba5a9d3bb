// One HDF5 file per split of an HDF5 dataset, over all its shards. Used by pack, merge and `data index
// --export`. Blocks on the storage.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::dataset {

/// Whether a file name is that of a view: `<split>.view.h5`. Views are not shards.
bool is_hdf5_view(std::string_view file);

/// Writes the views of the dataset and returns their names; with `all`, also for splits of one shard. Invalid
/// for shards of other tools.
enum class ViewedSplits { several_shards, all };
Result<std::vector<std::string>> write_hdf5_views(const Path& dataset, ViewedSplits which);

}  // namespace stoker::dataset
