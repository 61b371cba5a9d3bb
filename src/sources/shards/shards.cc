// Lists shards of other tools as a source: a scan of headers replaces the files of a folder.
#include "sources/shards/shards.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "archive/streams/stream_index.h"
#include "base/encode.h"
#include "base/language/counted.h"
#include "base/thread.h"
#include "dataset/hdf5_view.h"
#include "dataset/shard_source.h"
#include "sources/arrays/array_scan.h"
#include "sources/files/tree.h"
#include "sources/merged_names.h"
#include "sources/shard_scan.h"
#include "sources/shards/dataset_listing.h"
#include "sources/shards/scratch_files.h"
#include "sources/shards/shards_tree.h"
#include "sources/shards/source_builder.h"
#include "sources/split_name.h"
#include "sources/streams/stream_scan.h"
#include "sources/tables/class_names.h"
#include "sources/tables/parquet_scan.h"
#include "sources/tables/table_tree.h"

namespace stoker::sources {

namespace {

constexpr std::uint64_t kRecordLimit = 1u << 30;  // a record is read whole

// A shard of a different tool.
struct ForeignShard {
  std::string file;
  std::string split;                                // from a folder name
  TablePath table;                                  // partition keys of Parquet
  std::optional<archive::StreamShard> index_entry;  // its entry in an index.json
  std::optional<arrays::NpySet> rows;               // of NumPy files
  std::int64_t stamp = 0;
  UnpackedShard shard;
  ScratchFile unpacked_at;   // location of the unpacked shard
  ScratchFile converted_at;  // location of converted values
  bool declares_classes = false;
  Status status;
};

// Stores the unpacked files.
Status store_unpacked(ForeignShard& shard, ScratchFiles& files) {
  if (shard.shard.file) {
    STOKER_ASSIGN_OR_RETURN(file, files.keep(std::move(*shard.shard.file)));
    shard.unpacked_at = std::move(file);
  }
  if (shard.shard.converted) {
    STOKER_ASSIGN_OR_RETURN(made, files.keep(std::move(*shard.shard.converted)));
    shard.converted_at = std::move(made);
  }
  return {};
}

// Combines all files of the shard.
std::int64_t modification_stamp(const Path& folder, const ForeignShard& shard) {
  if (!shard.rows) return sources::modification_stamp(folder / shard.file);
  std::uint64_t sum = 0;
  for (const arrays::NpySet::Array& array : shard.rows->arrays)
    sum = sum * 31 + static_cast<std::uint64_t>(sources::modification_stamp(folder / array.file));
  return static_cast<std::int64_t>(sum);
}

Status scan_all(const Path& folder, std::vector<ForeignShard>& shards, const SourceOptions& options,
                Progress& progress) {
  ScratchFiles files(options.scratch, 2 * shards.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> done{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < shards.size() && !progress.stop_requested(); i = next++) {
      shards[i].stamp = modification_stamp(folder, shards[i]);
      const Path path = folder / shards[i].file;
      Result<UnpackedShard> scan =
          shards[i].index_entry
              ? unpack_stream(path.parent_path(), *shards[i].index_entry, options.scratch, progress)
          : shards[i].rows
              ? unpack_npy(folder, *shards[i].rows, options.scratch, progress)
              : scan_or_unpack(path, options.scratch, {options.table, shards[i].table}, progress);
      if (scan.ok()) shards[i].shard = std::move(*scan);
      shards[i].status = scan.ok() ? store_unpacked(shards[i], files) : scan.status();
      progress.report({.done = ++done, .total = shards.size(), .unit = "shards listed", .bytes = {}});
    }
  };
  {
    std::vector<Thread> helpers;
    for (int t = 1; t < options.threads && static_cast<std::size_t>(t) < shards.size(); ++t)
      helpers.emplace_back([&](const StopToken&) { work(); });
    work();
  }
  if (progress.stop_requested())
    return cancelled("{}: interrupted while listing", printable(folder.string()));
  for (const ForeignShard& shard : shards) STOKER_RETURN_IF_ERROR(shard.status);
  return {};
}

Status add_foreign_shard(ForeignShard& shard, SourceBuilder& builder, MergedNames& merged) {
  const std::string where = builder.tree().display_path(shard.file);
  const bool has_records = builder.tree().checksum_scope() == ChecksumScope::record;
  const std::string name = shard.split.empty() ? split_of_shard(shard.file) : shard.split;
  if (!is_utf8(name)) return invalid("{}: its split's name is not UTF-8", where);
  if (const auto& table = shard.shard.scan.table) {
    add_facts(builder.source().table, *table);
    if (shard.shard.scan.samples.empty()) return {};
  }
  const std::uint32_t split = builder.split(name);
  const std::uint32_t number =
      builder.tree().add_shard(shard.file, shard.shard.scan.bytes, shard.unpacked_at.file);
  std::uint32_t made = number;
  if (shard.converted_at.file) made = builder.tree().add_shard(shard.file, 0, shard.converted_at.file);
  for (const auto& [name, samples] : shard.shard.scan.skipped_fields)
    builder.source().skipped_fields[printable(name)] += samples;
  std::vector<SourceMember> members;
  std::vector<std::string_view> extensions;
  for (const ShardSample& sample : shard.shard.scan.samples) {
    if (has_records && sample.bytes > kRecordLimit) {
      return invalid("{}: sample '{}': a record of {} bytes (at most 1 GiB)", where, printable(sample.key),
                     sample.bytes);
    }
    members.clear();
    extensions.clear();
    for (const ShardMember& member : sample.members) {
      extensions.push_back(member.extension);
      const std::uint64_t begin = member.is_converted ? shard.converted_at.begin : shard.unpacked_at.begin;
      members.push_back({.extension = member.extension,
                         .bytes = member.bytes,
                         .stamp = shard.stamp,
                         .place = {.shard = member.is_converted ? made : number,
                                   .offset = begin + member.data_offset,
                                   .record_at = begin + sample.offset,
                                   .record_bytes = sample.bytes}});
    }
    merged.add(sample.key, extensions);
    const std::int64_t label = sample.label.value_or(-1);
    builder.source().has_number_labels = builder.source().has_number_labels || label >= 0;
    Status added = builder.add(split, sample.key, label, members, where);
    if (added.ok()) continue;
    const std::string& option = shard.shard.scan.row_keys_option;
    if (option.empty()) return added;
    return std::move(added).cure("{}, which names rows by file and number; or --key COLUMN", option);
  }
  return {};
}

// Subfolders with an index.json, which are splits; empty if other subfolders exist.
Result<std::vector<std::string>> index_folders(const Path& where) {
  std::vector<std::string> folders;
  if (!folder_exists(where) || path_exists(where / archive::kStreamIndexFile)) return folders;
  STOKER_ASSIGN_OR_RETURN(names, list_directory(where));
  for (std::string& name : names) {
    if (name.starts_with('.') || !folder_exists(where / name)) continue;
    if (!archive::has_stream_index(where / name)) return std::vector<std::string>();
    folders.push_back(std::move(name));
  }
  return folders;
}

// Shards in an index.json, of the folder itself or of one subfolder per split.
Result<std::vector<ForeignShard>> shards_of_index(const Path& where) {
  STOKER_ASSIGN_OR_RETURN(folders, index_folders(where));
  if (folders.empty()) folders.push_back({});
  std::vector<ForeignShard> shards;
  for (const std::string& folder : folders) {
    STOKER_ASSIGN_OR_RETURN(index, archive::read_stream_index(folder.empty() ? where : where / folder));
    for (archive::StreamShard& shard : index.shards) {
      if (shard.samples == 0) continue;
      ForeignShard& foreign = shards.emplace_back();
      foreign.file = folder.empty() ? shard.file : format("{}/{}", folder, shard.file);
      foreign.split = folder.empty() ? "all" : folder;
      foreign.index_entry = std::move(shard);
    }
  }
  if (shards.empty()) return invalid("{}: its index.json names no samples", printable(where.string()));
  return shards;
}

// Whether it is a folder of MDS shards or LitData chunks with their index, or of such folders.
bool has_index(const Path& where) {
  if (!folder_exists(where)) return false;
  if (archive::has_stream_index(where)) return true;
  const auto folders = index_folders(where);
  return folders.ok() && !folders->empty();
}

// A partitioned Parquet table. Pruned files are added to `facts`.
Result<std::vector<ForeignShard>> shards_of_tree(const Path& where, const std::string& condition,
                                                 std::optional<TableFacts>& facts) {
  STOKER_ASSIGN_OR_RETURN(tree, list_tables(where, condition));
  std::vector<ForeignShard> shards;
  for (TreeTable& table : tree.tables) {
    ForeignShard& shard = shards.emplace_back();
    shard.file = table.path.name;
    shard.split = std::move(table.split);
    shard.table = std::move(table.path);
  }
  if (tree.pruned > 0) add_facts(facts, {.files_pruned = tree.pruned});
  if (shards.empty() && facts) return no_rows_selected(printable(where.string()), *facts);
  return shards;
}

// Rows of NumPy files.
Result<std::vector<ForeignShard>> shards_of_rows(const Path& folder, const std::vector<std::string>& names) {
  STOKER_ASSIGN_OR_RETURN(sets, npy_sets(folder, names));
  std::vector<ForeignShard> shards;
  for (arrays::NpySet& set : sets) {
    ForeignShard& shard = shards.emplace_back();
    shard.file = set.file;
    shard.split = set.split;
    shard.rows = std::move(set);
  }
  return shards;
}

Result<std::vector<ForeignShard>> find_foreign_shards(const Path& where, const std::string& condition,
                                                      std::optional<TableFacts>& facts) {
  if (has_index(where)) return shards_of_index(where);
  if (folder_exists(where) && is_table_tree(where)) return shards_of_tree(where, condition, facts);
  std::vector<ForeignShard> shards;
  const std::string name = where.filename().string();
  if (!folder_exists(where) && is_numpy_file(name)) return shards_of_rows(where.parent_path(), {name});
  if (!folder_exists(where) || is_zarr(name)) {
    shards.push_back({.file = name});
    return shards;
  }
  STOKER_ASSIGN_OR_RETURN(names, list_directory(where));
  for (std::string& name : names) {
    if (!name.starts_with('.') && is_shard(name) && !dataset::is_hdf5_view(name))
      shards.push_back({.file = std::move(name)});
  }
  if (shards.empty()) return shards_of_rows(where, names);
  for (const ForeignShard& shard : shards) {
    if (kind_of_shard(shard.file) == kind_of_shard(shards[0].file)) continue;
    return invalid("{}: has shards of two formats: {} and {}", printable(where.string()),
                   printable(shards[0].file), printable(shard.file));
  }
  return shards;
}

std::vector<ShardScan*> scans_of(std::vector<ForeignShard>& shards) {
  std::vector<ShardScan*> scans;
  for (ForeignShard& shard : shards) scans.push_back(&shard.shard.scan);
  return scans;
}

// Options for rows and columns need tables.
Status check_table_options(const SourceOptions& options, std::span<const ForeignShard> shards) {
  if (!options.table.is_set() || (!shards.empty() && is_parquet(shards[0].file))) return {};
  return not_a_table(printable(options.where));
}

Result<PackSource> list_foreign_shards(const SourceOptions& options,
                                       std::shared_ptr<RateLimiter> rate_limiter, Progress& progress) {
  const Path where = options.where;
  std::optional<TableFacts> facts;
  STOKER_ASSIGN_OR_RETURN(shards, find_foreign_shards(where, options.table.where, facts));
  STOKER_RETURN_IF_ERROR(check_table_options(options, shards));
  const bool is_one = !folder_exists(where) || is_zarr(where.filename().string());
  const Path folder = is_one ? where.parent_path() : where;
  STOKER_RETURN_IF_ERROR(scan_all(folder, shards, options, progress));
  SourceBuilder builder(folder, is_tfrecord(shards[0].file) ? ChecksumScope::record : ChecksumScope::none,
                        std::move(rate_limiter));
  STOKER_ASSIGN_OR_RETURN(classes, number_classes(scans_of(shards)));
  MergedNames merged;
  std::map<std::string, std::uint64_t> skipped_members;
  for (ForeignShard& shard : shards) {
    STOKER_RETURN_IF_ERROR(add_foreign_shard(shard, builder, merged));
    for (const auto& [why, members] : shard.shard.scan.skipped_members) skipped_members[why] += members;
    shard.declares_classes = !shard.shard.scan.class_names.empty();
    shard.shard.scan = {};
  }
  PackSource& source = builder.source();
  for (const auto& [why, members] : skipped_members)
    source.notes.push_back(format("skipped: {} ({})", counted(members, "member"), why));
  if (std::string note = merged.note(); !note.empty()) source.notes.push_back(std::move(note));
  if (facts) add_facts(source.table, *facts);
  source.declares_classes =
      std::ranges::any_of(shards, [](const ForeignShard& shard) { return shard.declares_classes; });
  source.classes = std::move(classes);
  source.has_selectable_columns =
      is_parquet(shards[0].file) && !source.table && !source.skipped_fields.empty();
  if (source.files == 0 && source.table) return no_rows_selected(printable(where.string()), *source.table);
  return builder.finish(where);
}

// Whether a folder has shards but no subfolders and no images. Stops at the first of the latter.
bool is_folder_of_shards(const Path& folder) {
  std::error_code error;
  std::error_code ignored;
  bool has_shard = false;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with('.')) continue;
    const bool is_folder = at->is_directory(ignored) && !is_zarr(name);
    if (is_folder || is_image_extension(extension_of(name))) return false;
    has_shard = has_shard || is_shard(name) || is_numpy_file(name);
  }
  return has_shard && !error;
}

// Also an unfinished pack, and a dataset without its index, which list_from_shards() refuses. A manifest.json
// without an index may be from a different tool.
bool is_dataset(const Path& folder) {
  if (path_exists(folder / dataset::kPendingFolder)) return true;
  if (!path_exists(folder / dataset::kManifestFile)) return false;
  return path_exists(folder / dataset::kIndexFile) || dataset::read_manifest(folder).ok();
}

Result<dataset::OpenDataset> open_with_cure(const Path& folder) {
  Result<dataset::OpenDataset> opened = dataset::open_dataset(folder);
  const bool is_lost =
      path_exists(folder / dataset::kManifestFile) && !path_exists(folder / dataset::kIndexFile);
  if (opened.ok() || !is_lost) return opened;
  return Status(opened.status()).cure("stoker data index {}", shell_quote(folder.string()));
}

}  // namespace

Result<bool> is_shard_source(const SourceOptions& options) {
  const Path where = options.where;
  const std::string name = where.filename().string();
  if (is_zarr(name) || is_hdf5(name)) return true;
  if (is_mds(name) && !folder_exists(where)) return true;
  if (is_numpy_file(name) && !folder_exists(where)) return true;
  if (!folder_exists(where)) {
    if (!is_parquet(name)) return is_tfrecord(name);
    const bool is_table = options.table.is_set() || !options.allows_lists;
    return is_table ? Result<bool>(true) : holds_samples(where);
  }
  if (is_dataset(where)) return true;
  // SourceLayout::files packs the shards themselves as files.
  return options.layout != SourceLayout::files &&
         (is_folder_of_shards(where) || has_index(where) || is_table_tree(where));
}

Result<PackSource> list_from_shards(const SourceOptions& options, std::shared_ptr<RateLimiter> rate_limiter,
                                    Progress& progress) {
  if (!is_dataset(options.where)) return list_foreign_shards(options, std::move(rate_limiter), progress);
  STOKER_ASSIGN_OR_RETURN(opened, open_with_cure(options.where));
  if (!options.table.is_set()) return list_dataset(options, opened, std::move(rate_limiter), progress);
  STOKER_ASSIGN_OR_RETURN(source, list_foreign_shards(options, std::move(rate_limiter), progress));
  source.notes.push_back(format("the index of {} is not used: the options select rows and columns instead",
                                printable(options.where)));
  return std::move(source);
}

}  // namespace stoker::sources
