#include "data/look/index_shards.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "data/look/arrays/grid.h"
#include "data/look/arrays/hdf5_view.h"
#include "data/look/shard_scan.h"
#include "data/look/tables/paths/table_tree.h"
#include "format/streams/stream_index.h"

namespace stoker::data {

namespace {

IndexedShard shard_called(std::string file) {
  std::string split = split_of_shard(file);
  return {.file = std::move(file), .split = std::move(split), .table = {}};
}

// Those that MosaicML's index.json names, in its order.
Result<ShardsToIndex> shards_of_index(const Path& folder) {
  OK_OR_RETURN(index, formats::read_stream_index(folder));
  ShardsToIndex found;
  for (const formats::StreamShard& shard : index.shards) {
    if (!is_mds(shard.file)) {
      return invalid("{}: chunks of {} cannot be read where they lie", printable(folder.string()), index.tool)
          .cure("stoker data convert {} OUT", shell_quote(folder.string()));
    }
    if (shard.samples > 0) found.shards.push_back(shard_called(shard.file));
  }
  return found;
}

// Parquet in folders.
Result<ShardsToIndex> shards_of_tree(const Path& folder, const std::string& where) {
  OK_OR_RETURN(tree, list_tables(folder, where));
  ShardsToIndex found{.shards = {}, .passed_over = tree.passed_over};
  for (TreeTable& table : tree.tables) {
    std::string file = table.path.name;
    found.shards.push_back(
        {.file = std::move(file), .split = std::move(table.split), .table = std::move(table.path)});
  }
  return found;
}

// `shard` was named where the folder of all shards is asked for.
Status name_the_folder(const Path& shard) {
  const Path plain = (shard / "").parent_path();  // without a slash at its end
  const Path parent = plain.has_parent_path() ? plain.parent_path() : Path(".");
  return invalid("{}: is a shard; an index is of all that lie in one folder", printable(shard.string()))
      .cure("stoker data index {}", shell_quote(parent.string()));
}

Status check_kinds(const std::vector<IndexedShard>& shards, std::string_view folder) {
  for (const IndexedShard& shard : shards) {
    const ContainerKind first = kind_of_shard(shards[0].file);
    const ContainerKind other = kind_of_shard(shard.file);
    if (other == first) continue;
    return invalid("{}: a dataset is of one kind: {} is {}, {} is {}", folder, printable(shards[0].file),
                   to_text(first), printable(shard.file), to_text(other));
  }
  return {};
}

// Each a grid of its own, or of the first variable that is asked for; or each archive.
Result<ShardsToIndex> shards_of_npy(const std::vector<std::string>& names, const WindowOptions& windows,
                                    std::string_view folder) {
  ShardsToIndex found;
  for (const std::string& file : npy_grids(names, windows.variables)) {
    const std::string before(before_variable(file, windows.variables));
    found.shards.push_back({.file = file, .split = split_of_shard(before), .table = {}});
  }
  for (const std::string& file : names) {
    if (!is_npz(file) || file.starts_with('.')) continue;
    if (!found.shards.empty() && is_npy(found.shards[0].file))
      return invalid("{}: its shards are of two kinds: {} and {}", folder, printable(found.shards[0].file),
                     printable(file));
    found.shards.push_back(shard_called(file));
  }
  if (!found.shards.empty()) return found;
  if (windows.variables.empty())
    return invalid("{}: no *.h5, *.zarr.zip, *.zarr, *.npy or *.npz in it (--window)", folder);
  return invalid("{}: no *.h5, *.zarr.zip, *.zarr, *.npz or {}.npy in it (--window)", folder,
                 printable(windows.variables[0]));
}

Result<std::vector<IndexedShard>> shards_of_rows(const Path& folder, const std::vector<std::string>& names) {
  OK_OR_RETURN(sets, npy_shards(folder, names));
  std::vector<IndexedShard> shards;
  for (NpySet& set : sets)
    shards.push_back({.file = set.file, .split = set.split, .table = {}, .rows = std::move(set)});
  return shards;
}

}  // namespace

Result<ShardsToIndex> find_shards(const Path& folder, const std::string& where,
                                  const WindowOptions* windows) {
  const std::string name = printable(folder.string());
  const std::string last = (folder / "").parent_path().filename().string();
  const bool is_called_shard = is_shard(last) || is_numpys(last);
  if (!folder_exists(folder)) {
    if (!path_exists(folder)) return not_found("{}: no such folder", name);
    return is_called_shard ? name_the_folder(folder) : invalid("{}: is no folder", name);
  }
  if (formats::has_stream_index(folder)) return shards_of_index(folder);
  if (is_table_tree(folder)) return shards_of_tree(folder, where);
  OK_OR_RETURN(names, list_directory(folder));
  ShardsToIndex found;
  for (const std::string& file : names) {
    if (is_shard(file) && !is_hdf5_view(file) && !file.starts_with('.'))
      found.shards.push_back(shard_called(file));
  }
  if (found.shards.empty() && windows != nullptr) return shards_of_npy(names, *windows, name);
  if (found.shards.empty()) {
    OK_OR_RETURN(rows, shards_of_rows(folder, names));
    found.shards = std::move(rows);
  }
  if (found.shards.empty() && is_called_shard) return name_the_folder(folder);
  if (found.shards.empty())
    return invalid(
        "{}: no shards (*.tar, *.tfrecord, *-00000-of-00001, *.parquet, *.h5, *.zarr.zip, "
        "*.mds, *.npy, *.npz) in it",
        name);
  RETURN_IF_ERROR(check_kinds(found.shards, name));
  return found;
}

Result<std::vector<IndexedShard>> shards_of_manifest(const Path& folder, const formats::Manifest& manifest) {
  std::vector<TreeTable> tables;
  if (manifest.schema.container == to_text(ContainerKind::parquet) && is_table_tree(folder)) {
    OK_OR_RETURN(tree, list_tables(folder, ""));
    tables = std::move(tree.tables);
  }
  std::map<std::string, NpySet> rows;
  if (manifest.schema.container == to_text(ContainerKind::npy)) {
    OK_OR_RETURN(names, list_directory(folder));
    Result<std::vector<NpySet>> sets = npy_shards(folder, names);  // of windows it may be anything
    for (std::size_t i = 0; sets.ok() && i < sets->size(); ++i) rows[(*sets)[i].file] = (*sets)[i];
  }
  std::vector<IndexedShard> shards;
  for (const formats::SplitInfo& split : manifest.splits) {
    for (const formats::ShardInfo& shard : split.shards) {
      IndexedShard& added = shards.emplace_back();
      added.file = shard.file;
      added.split = split.name;
      const auto table = std::ranges::lower_bound(tables, shard.file, {},
                                                  [](const TreeTable& one) { return one.path.name; });
      if (table != tables.end() && table->path.name == shard.file) added.table = table->path;
      if (const auto row = rows.find(shard.file); row != rows.end()) added.rows = row->second;
    }
  }
  return shards;
}

}  // namespace stoker::data
