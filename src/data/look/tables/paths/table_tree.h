// Tables in folders below a folder, whose names are values of columns, or splits. Used where sources are
// listed and indexed. Blocks on the storage. Rules: docs/formats/tables.md#partitions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "data/look/tables/paths/table_path.h"

namespace stoker::data {

/// A Parquet file of such a folder.
struct TreeTable {
  TablePath path;
  std::string split;
};

struct TableTree {
  std::vector<TreeTable> tables;  ///< by name; all have the same columns in their paths
  std::uint64_t passed_over = 0;  ///< files that are left out for their paths
};

/// Whether a folder has tables in folders below it, and no images. Stops at the first file that says no.
bool is_table_tree(const Path& folder);

/// Its tables, but for those of which no row can be as `where` says. Opens none. Invalid for paths that say
/// two things at once, and for a condition that does not fit their columns.
Result<TableTree> list_tables(const Path& folder, const std::string& where);

}  // namespace stoker::data
