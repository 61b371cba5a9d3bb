// Writes the indexes that other readers of tar, TFRecord and HDF5 shards want, beside the shards. Used by
// `stoker data index
// --export`. The layouts: docs/commands/data-index.md. Blocks on the storage.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "format/manifest.h"

namespace stoker::data {

enum class IndexExport {
  wids,     ///< <split>.wids.json: webdataset's random access
  dali,     ///< <shard>.idx, version 1.2
  energon,  ///< <shard>.tar.idx and .nv-meta/
  hdf5,     ///< <split>.view.h5, a virtual dataset over all shards
};

/// What an export made.
struct IndexFiles {
  std::vector<std::string> written;  ///< from the dataset's folder, sorted
  std::vector<std::string> notes;    ///< what could not be written, and why
};

/// Writes them for a dataset. Invalid for names that the target cannot hold.
Result<IndexFiles> export_index(const Path& folder, const formats::Manifest& manifest, IndexExport what,
                                Progress& progress);

}  // namespace stoker::data
