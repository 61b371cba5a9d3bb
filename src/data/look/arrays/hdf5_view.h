// One HDF5 file for each split of a dataset in HDF5, over all its shards. Used by pack, merge and `data index
// --export`. Blocks on the storage.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace stoker::data {

/// Whether a file is called as these are: `<split>.view.h5`. They are no shards.
bool is_hdf5_view(std::string_view file);

/// Writes them for the dataset, those of splits of one shard too if `all`; their names. Invalid for shards
/// that another tool has written.
enum class ViewedSplits { several_shards, all };
Result<std::vector<std::string>> write_hdf5_views(const Path& dataset, ViewedSplits which);

}  // namespace stoker::data
