// Partitioned tables: folder names are values of columns, or splits. Used to list and index sources. Blocks
// on the storage. Rules: docs/formats/tables.md#partitions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "sources/table_path.h"
#include "stoker/status.h"

namespace stoker::sources {

/// A Parquet file of such a folder.
struct TreeTable {
  TablePath path;
  std::string split;
};

struct TableTree {
  std::vector<TreeTable> tables;  ///< by name; all have the same partition keys
  std::uint64_t pruned = 0;       ///< files excluded by their paths
};

/// Whether a folder has tables in subfolders, and no images. Stops at the first other shard.
bool is_table_tree(const Path& folder);

/// Lists the tables except those whose partition keys cannot match `where`. Opens no file. Invalid for
/// contradictory paths, and for a condition that does not fit their columns.
Result<TableTree> list_tables(const Path& folder, const std::string& where);

}  // namespace stoker::sources
