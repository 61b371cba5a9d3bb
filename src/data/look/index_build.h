// Gives a folder of tar shards that another tool wrote an index and a manifest, so that it reads as a
// dataset; or makes a lost index of ours again. The shards are read and never changed. Used by `stoker data
// index`. Blocks on the storage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "data/look/arrays/window_scan.h"
#include "data/look/tables/table_options.h"
#include "format/manifest.h"

namespace stoker::data {

struct IndexOptions {
  int threads = 1;
  std::optional<WindowOptions> windows = {};  ///< samples are windows over the shards' arrays
  TableOptions table = {};                    ///< of Parquet: which rows are samples, and what of them
};

struct IndexBuild {
  formats::Manifest manifest;
  bool had_manifest = false;  ///< only the index was made again, and is the one that the manifest names
  std::optional<TableFacts> table = {};  ///< what was read of tables of numbers
  std::vector<std::string> notes = {};   ///< what no sample has, and why or what would take it
};

/// Splits are what file names have before their number ("train-000000.tar" → train). Labels of tar come from
/// members `cls` (a number) or `json` (its field "label"); a sample without one has -1. Errors: no shards, a
/// shard that is damaged or unsafe, shards that are not those of a manifest that is there.
Result<IndexBuild> build_index(const Path& folder, const IndexOptions& options, Progress& progress);

}  // namespace stoker::data
