#include "pack/index/index_shards.h"

#include <algorithm>
#include <map>
#include <utility>

#include "archive/streams/stream_index.h"
#include "dataset/hdf5_view.h"
#include "sources/arrays/grid.h"
#include "sources/shard_scan.h"
#include "sources/split_name.h"
#include "sources/tables/table_tree.h"
#include "stoker/text.h"

namespace stoker::pack {

namespace {

IndexedShard shard_named(std::string file) {
  std::string split = sources::split_of_shard(file);
  return {.file = std::move(file), .split = std::move(split), .table = {}};
}

// Shards in MosaicML's index.json, in its order.
Result<ShardsToIndex> shards_of_index(const Path& folder) {
  STOKER_ASSIGN_OR_RETURN(index, archive::read_stream_index(folder));
  ShardsToIndex found;
  for (const archive::StreamShard& shard : index.shards) {
    if (!sources::is_mds(shard.file)) {
      return invalid("{}: chunks of {} cannot be read in place", printable(folder.string()), index.tool)
          .cure("stoker data convert {} OUT", shell_quote(folder.string()));
    }
    if (shard.samples == 0) continue;
    found.shards.push_back(shard_named(shard.file));
    found.shards.back().listed_samples = shard.samples;
  }
  STOKER_ASSIGN_OR_RETURN(names, list_directory(folder));
  for (const std::string& file : names) {
    const bool is_listed = std::ranges::any_of(
        index.shards, [&](const archive::StreamShard& shard) { return shard.file == file; });
    if (sources::is_mds(file) && !is_listed)
      found.notes.push_back(format("skipped: {}, which index.json does not list", printable(file)));
  }
  return found;
}

// A partitioned Parquet table.
Result<ShardsToIndex> shards_of_tree(const Path& folder, const std::string& where) {
  STOKER_ASSIGN_OR_RETURN(tree, sources::list_tables(folder, where));
  ShardsToIndex found{.shards = {}, .pruned = tree.pruned};
  for (sources::TreeTable& table : tree.tables) {
    std::string file = table.path.name;
    found.shards.push_back(
        {.file = std::move(file), .split = std::move(table.split), .table = std::move(table.path)});
  }
  return found;
}

// `shard` is used instead of the folder of all shards.
Status shard_instead_of_folder(const Path& shard) {
  const Path plain = (shard / "").parent_path();  // without a trailing slash
  const Path parent = plain.has_parent_path() ? plain.parent_path() : Path(".");
  return invalid("{}: is a shard; `data index` needs the folder of all shards", printable(shard.string()))
      .cure("stoker data index {}", shell_quote(parent.string()));
}

Status check_kinds(const std::vector<IndexedShard>& shards, std::string_view folder) {
  for (const IndexedShard& shard : shards) {
    const dataset::ContainerKind first = sources::kind_of_shard(shards[0].file);
    const dataset::ContainerKind other = sources::kind_of_shard(shard.file);
    if (other == first) continue;
    return invalid("{}: a dataset has shards of one format: {} is {}, {} is {}", folder,
                   printable(shards[0].file), to_text(first), printable(shard.file), to_text(other));
  }
  return {};
}

// One shard per grid (or per first variable), and per archive.
Result<ShardsToIndex> shards_of_npy(const std::vector<std::string>& names,
                                    const sources::WindowOptions& windows, std::string_view folder) {
  ShardsToIndex found;
  for (const std::string& file : sources::npy_grids(names, windows.variables)) {
    const std::string before(sources::before_variable(file, windows.variables));
    found.shards.push_back({.file = file, .split = sources::split_of_shard(before), .table = {}});
  }
  for (const std::string& file : names) {
    if (!sources::is_npz(file) || file.starts_with('.')) continue;
    if (!found.shards.empty() && sources::is_npy(found.shards[0].file))
      return invalid("{}: has shards of two formats: {} and {}", folder, printable(found.shards[0].file),
                     printable(file));
    found.shards.push_back(shard_named(file));
  }
  if (!found.shards.empty()) return found;
  if (windows.variables.empty())
    return invalid("{}: no *.h5, *.zarr.zip, *.zarr, *.npy or *.npz in it (--window)", folder);
  return invalid("{}: no *.h5, *.zarr.zip, *.zarr, *.npz or {}.npy in it (--window)", folder,
                 printable(windows.variables[0]));
}

Result<std::vector<IndexedShard>> shards_of_rows(const Path& folder, const std::vector<std::string>& names) {
  STOKER_ASSIGN_OR_RETURN(sets, sources::npy_shards(folder, names));
  std::vector<IndexedShard> shards;
  for (arrays::NpySet& set : sets)
    shards.push_back({.file = set.file, .split = set.split, .table = {}, .rows = std::move(set)});
  return shards;
}

}  // namespace

Result<ShardsToIndex> find_shards(const Path& folder, const std::string& where,
                                  const sources::WindowOptions* windows) {
  const std::string name = printable(folder.string());
  const std::string last = (folder / "").parent_path().filename().string();
  const bool is_called_shard = sources::is_shard(last) || sources::is_numpy_file(last);
  if (!folder_exists(folder)) {
    if (!path_exists(folder)) return not_found("{}: no such folder", name);
    return is_called_shard ? shard_instead_of_folder(folder) : invalid("{}: is not a folder", name);
  }
  if (archive::has_stream_index(folder)) return shards_of_index(folder);
  if (sources::is_table_tree(folder)) return shards_of_tree(folder, where);
  STOKER_ASSIGN_OR_RETURN(names, list_directory(folder));
  ShardsToIndex found;
  for (const std::string& file : names) {
    if (sources::is_shard(file) && !dataset::is_hdf5_view(file) && !file.starts_with('.'))
      found.shards.push_back(shard_named(file));
  }
  if (found.shards.empty() && windows != nullptr) return shards_of_npy(names, *windows, name);
  if (found.shards.empty()) {
    STOKER_ASSIGN_OR_RETURN(rows, shards_of_rows(folder, names));
    found.shards = std::move(rows);
  }
  if (found.shards.empty() && is_called_shard) return shard_instead_of_folder(folder);
  if (found.shards.empty())
    return invalid(
        "{}: no shards (*.tar, *.tfrecord, *-00000-of-00001, *.parquet, *.h5, *.zarr.zip, "
        "*.mds, *.npy, *.npz) in it",
        name);
  STOKER_RETURN_IF_ERROR(check_kinds(found.shards, name));
  return found;
}

Result<std::vector<IndexedShard>> shards_of_manifest(const Path& folder, const dataset::Manifest& manifest) {
  std::vector<sources::TreeTable> tables;
  if (manifest.schema.container == to_text(dataset::ContainerKind::parquet) &&
      sources::is_table_tree(folder)) {
    STOKER_ASSIGN_OR_RETURN(tree, sources::list_tables(folder, ""));
    tables = std::move(tree.tables);
  }
  std::map<std::string, arrays::NpySet> rows;
  if (manifest.schema.container == to_text(dataset::ContainerKind::npy)) {
    STOKER_ASSIGN_OR_RETURN(names, list_directory(folder));
    // NumPy files of windows need not be rows
    Result<std::vector<arrays::NpySet>> sets = sources::npy_shards(folder, names);
    for (std::size_t i = 0; sets.ok() && i < sets->size(); ++i) rows[(*sets)[i].file] = (*sets)[i];
  }
  std::vector<IndexedShard> shards;
  for (const dataset::SplitInfo& split : manifest.splits) {
    for (const dataset::ShardInfo& shard : split.shards) {
      IndexedShard& added = shards.emplace_back();
      added.file = shard.file;
      added.split = split.name;
      const auto table = std::ranges::lower_bound(
          tables, shard.file, {}, [](const sources::TreeTable& one) { return one.path.name; });
      if (table != tables.end() && table->path.name == shard.file) added.table = table->path;
      if (const auto row = rows.find(shard.file); row != rows.end()) added.rows = row->second;
    }
  }
  return shards;
}

}  // namespace stoker::pack
