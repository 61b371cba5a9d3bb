// Which files of a folder are the shards that an index is made of. Used by index_build. Blocks on the
// storage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "data/look/arrays/numpy/npy_sets.h"
#include "data/look/arrays/window_scan.h"
#include "data/look/tables/paths/table_path.h"
#include "format/manifest.h"

namespace stoker::data {

struct IndexedShard {
  std::string file;  ///< its path below the folder
  std::string split;
  TablePath table;                  ///< of Parquet in folders
  std::optional<NpySet> rows = {};  ///< of NumPy's files, unless windows are asked for
};

struct ShardsToIndex {
  std::vector<IndexedShard> shards;
  std::uint64_t passed_over = 0;  ///< tables whose paths say that they have no row that `where` takes
};

/// All of one kind, by name. Invalid where there is none, or several kinds.
/// Where there is no other shard, NumPy's files.
Result<ShardsToIndex> find_shards(const Path& folder, const std::string& where, const WindowOptions* windows);

/// Those that the manifest names, in its order.
Result<std::vector<IndexedShard>> shards_of_manifest(const Path& folder, const formats::Manifest& manifest);

}  // namespace stoker::data
