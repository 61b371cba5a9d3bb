// Writes the indexes that other readers of tar shards want, beside the shards. Used by `stoker data index
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
};

/// Writes them for a dataset; returns the files' names, sorted. Invalid for names that the target cannot
/// hold.
Result<std::vector<std::string>> export_index(const Path& folder, const formats::Manifest& manifest,
                                              IndexExport what, Progress& progress);

}  // namespace stoker::data
