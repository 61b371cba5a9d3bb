// Finds the shards of a folder. Used by index_build. Blocks on the storage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "dataset/manifest.h"
#include "sources/arrays/npy_sets.h"
#include "sources/arrays/window_scan.h"
#include "sources/table_path.h"
#include "stoker/status.h"

namespace stoker::pack {

struct IndexedShard {
  std::string file;  ///< relative to the folder
  std::string split;
  sources::TablePath table;                          ///< partition keys of Parquet
  std::optional<arrays::NpySet> rows = {};           ///< of NumPy files, without windows
  std::optional<std::uint64_t> listed_samples = {};  ///< in MDS's index.json
};

struct ShardsToIndex {
  std::vector<IndexedShard> shards;
  std::uint64_t pruned = 0;             ///< tables whose partition keys exclude them by `where`
  std::vector<std::string> notes = {};  ///< unexpected things, one sentence each
};

/// All shards by name; NumPy files only if there are no other shards. Invalid for no shards or several
/// formats.
Result<ShardsToIndex> find_shards(const Path& folder, const std::string& where,
                                  const sources::WindowOptions* windows);

/// The shards of the manifest, in its order.
Result<std::vector<IndexedShard>> shards_of_manifest(const Path& folder, const dataset::Manifest& manifest);

}  // namespace stoker::pack
