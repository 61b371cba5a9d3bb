// Exports index files for other readers of tar, TFRecord and HDF5 shards, next to the shards. Used by `stoker
// data index --export`. Layouts: docs/commands/data-index.md. Blocks on the storage.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "dataset/manifest.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::inspect {

enum class IndexExport {
  wids,     ///< <split>.wids.json: webdataset's random access
  dali,     ///< <shard>.idx, version 1.2
  energon,  ///< <shard>.tar.idx and .nv-meta/
  hdf5,     ///< <split>.view.h5, a virtual dataset over all shards
};

/// The result of an export.
struct IndexFiles {
  std::vector<std::string> written;  ///< paths relative to the dataset, sorted
  std::vector<std::string> notes;    ///< skipped files and the reasons
};

/// Exports the index of a dataset. Invalid for names that the format cannot store.
Result<IndexFiles> export_index(const Path& folder, const dataset::Manifest& manifest, IndexExport what,
                                Progress& progress);

}  // namespace stoker::inspect
