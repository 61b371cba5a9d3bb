// Builds index and manifest for a folder of shards from a different tool, so that it can be used as a
// dataset; or rebuilds a lost index. Shards are read and never changed. Used by `stoker data index`. Blocks
// on the storage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "dataset/manifest.h"
#include "sources/arrays/window_scan.h"
#include "sources/table_options.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::pack {

struct IndexOptions {
  int threads = 1;
  std::optional<sources::WindowOptions> windows = {};  ///< samples are windows over the shards' arrays
  sources::TableOptions table = {};                    ///< for Parquet: selected rows and columns
};

struct IndexBuild {
  dataset::Manifest manifest;
  bool had_manifest = false;                      ///< only the index was rebuilt, and it matches the manifest
  std::optional<sources::TableFacts> table = {};  ///< facts of the tables
  std::vector<std::string> notes = {};            ///< skipped fields, with reasons and cures
};

/// The split is the part of a file name before its number ("train-000000.tar" → train). Tar labels come from
/// members `cls` (a number) or `json` (field "label"); -1 without one. Errors: no shards, a damaged or unsafe
/// shard, shards that do not match an existing manifest.
Result<IndexBuild> build_index(const Path& folder, const IndexOptions& options, Progress& progress);

}  // namespace stoker::pack
