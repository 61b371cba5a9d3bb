// A dataset, or the shards of other tools, as a source: what an index or a scan of their headers tells stands
// for the files of a folder.
#include <algorithm>
#include <atomic>

#include "base/encode.h"
#include "base/thread.h"
#include "data/look/arrays/array_scan.h"
#include "data/look/arrays/hdf5_view.h"
#include "data/look/parquet_scan.h"
#include "data/look/shard_scan.h"
#include "data/look/streams/stream_scan.h"
#include "data/look/tables/class_names.h"
#include "data/look/tables/paths/table_tree.h"
#include "data/pack/source/scratch_files.h"
#include "data/pack/source/shards_tree.h"
#include "data/pack/source/taker.h"
#include "data/pack/source/tree.h"
#include "format/shard_source.h"
#include "format/streams/stream_index.h"

namespace stoker::data {

namespace {

constexpr std::uint64_t kRecordLimit = 1u << 30;  // a record is held whole

// The sample's key, or its shard and number where the index has no keys.
std::string key_of(const formats::IndexSection& section, const formats::ShardInfo& shard,
                   std::uint64_t sample) {
  if (section.has_keys()) return std::string(section.key(sample));
  return format("{}/{:08}", shard.file.substr(0, shard.file.find('.')), sample);
}

Status take_section(const formats::IndexSection& section, const formats::ShardInfo& shard,
                    std::uint32_t split, std::size_t classes, Taker& taker) {
  const std::string where = taker.tree().shown(shard.file);
  const std::uint32_t number = taker.tree().add_shard(shard.file, shard.bytes, nullptr);
  std::vector<Member> members;
  for (std::uint64_t sample = 0; sample < section.samples(); ++sample) {
    members.clear();
    for (std::uint32_t i = 0; i < section.component_count(sample); ++i) {
      const formats::Component file = section.component(sample, i);
      members.push_back({.extension = section.names()[file.name],
                         .bytes = file.length,
                         .stamp = file.crc32c,
                         .place = {.shard = number, .crc32c = file.crc32c, .offset = file.offset}});
    }
    const std::int64_t label = section.has_labels() ? section.label(sample) : -1;
    if (classes > 0 && label >= static_cast<std::int64_t>(classes)) {
      return corrupt("{}: sample '{}' has label {} of {} classes", where,
                     printable(key_of(section, shard, sample)), label, classes);
    }
    RETURN_IF_ERROR(taker.add(split, key_of(section, shard, sample), label, members, where));
  }
  return {};
}

Result<Source> take_dataset(const Path& folder, const formats::OpenDataset& opened,
                            std::shared_ptr<Pace> pace, const Progress& progress) {
  Taker taker(folder, Proof::file, std::move(pace));
  const formats::Schema& schema = opened.manifest.schema;
  std::size_t section = 0;
  for (const formats::SplitInfo& split : opened.manifest.splits) {
    const std::uint32_t number = taker.split(split.name);
    for (const formats::ShardInfo& shard : split.shards) {
      if (progress.stop_requested())
        return cancelled("{}: stopped while it was listed", taker.tree().shown(""));
      RETURN_IF_ERROR(
          take_section(opened.index.sections()[section++], shard, number, schema.classes.size(), taker));
    }
  }
  taker.source().classes = schema.classes;
  taker.source().has_number_labels = schema.has_labels && schema.classes.empty();
  return taker.finish(folder);
}

// One shard of another tool.
struct Foreign {
  std::string file;
  std::string split;                             // where a folder says it and not the name
  TablePath table;                               // of Parquet in folders
  std::optional<formats::StreamShard> of_index;  // where an index.json has it
  std::optional<NpySet> rows;                    // of NumPy's files
  std::int64_t stamp = 0;
  UnpackedShard shard;
  ScratchFile file_at;  // what it was unpacked to
  ScratchFile made_at;  // and what was made of its values
  Status status;
};

// Where what was unpacked is read from now on.
Status keep_open(Foreign& shard, ScratchFiles& files) {
  if (shard.shard.file) {
    OK_OR_RETURN(file, files.keep(std::move(*shard.shard.file)));
    shard.file_at = std::move(file);
  }
  if (shard.shard.made) {
    OK_OR_RETURN(made, files.keep(std::move(*shard.shard.made)));
    shard.made_at = std::move(made);
  }
  return {};
}

// Of all files that make the shard.
std::int64_t stamp_of(const Path& folder, const Foreign& shard) {
  if (!shard.rows) return data::stamp_of(folder / shard.file);
  std::uint64_t sum = 0;
  for (const NpySet::Array& array : shard.rows->arrays)
    sum = sum * 31 + static_cast<std::uint64_t>(data::stamp_of(folder / array.file));
  return static_cast<std::int64_t>(sum);
}

Status scan_all(const Path& folder, std::vector<Foreign>& shards, const SourceOptions& options,
                Progress& progress) {
  ScratchFiles files(options.scratch, 2 * shards.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> done{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < shards.size() && !progress.stop_requested(); i = next++) {
      shards[i].stamp = stamp_of(folder, shards[i]);
      const Path path = folder / shards[i].file;
      Result<UnpackedShard> scan =
          shards[i].of_index
              ? unpack_stream(path.parent_path(), *shards[i].of_index, options.scratch, progress)
          : shards[i].rows
              ? unpack_npy(folder, *shards[i].rows, options.scratch, progress)
              : scan_or_unpack(path, options.scratch, {options.table, shards[i].table}, progress);
      if (scan.ok()) shards[i].shard = std::move(*scan);
      shards[i].status = scan.ok() ? keep_open(shards[i], files) : scan.status();
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
    return cancelled("{}: stopped while it was listed", printable(folder.string()));
  for (const Foreign& shard : shards) RETURN_IF_ERROR(shard.status);
  return {};
}

Status take_foreign(Foreign& shard, Taker& taker) {
  const std::string where = taker.tree().shown(shard.file);
  const bool has_records = taker.tree().proof() == Proof::record;
  const std::string name = shard.split.empty() ? split_of_shard(shard.file) : shard.split;
  if (!is_utf8(name)) return invalid("{}: its split's name is not UTF-8", where);
  if (const auto& table = shard.shard.scan.table) {
    add_to(taker.source().table, *table);
    if (shard.shard.scan.samples.empty()) return {};
  }
  const std::uint32_t split = taker.split(name);
  const std::uint32_t number = taker.tree().add_shard(shard.file, shard.shard.scan.bytes, shard.file_at.file);
  std::uint32_t made = number;
  if (shard.made_at.file) made = taker.tree().add_shard(shard.file, 0, shard.made_at.file);
  for (const auto& [name, samples] : shard.shard.scan.not_taken)
    taker.source().not_carried[printable(name)] += samples;
  std::vector<Member> members;
  for (const ShardSample& sample : shard.shard.scan.samples) {
    if (has_records && sample.bytes > kRecordLimit) {
      return invalid("{}: sample '{}': a record of {} bytes (at most 1 GiB)", where, printable(sample.key),
                     sample.bytes);
    }
    members.clear();
    for (const ShardMember& member : sample.members) {
      const std::uint64_t begin = member.is_made ? shard.made_at.begin : shard.file_at.begin;
      members.push_back({.extension = member.extension,
                         .bytes = member.bytes,
                         .stamp = shard.stamp,
                         .place = {.shard = member.is_made ? made : number,
                                   .offset = begin + member.data_offset,
                                   .record_at = begin + sample.offset,
                                   .record_bytes = sample.bytes}});
    }
    const std::int64_t label = sample.label.value_or(-1);
    taker.source().has_number_labels = taker.source().has_number_labels || label >= 0;
    RETURN_IF_ERROR(taker.add(split, sample.key, label, members, where));
  }
  return {};
}

// The folders below that hold an index.json, if there are any and nothing else: they are splits.
Result<std::vector<std::string>> folders_of_index(const Path& where) {
  std::vector<std::string> folders;
  if (!folder_exists(where) || path_exists(where / formats::kStreamIndexFile)) return folders;
  OK_OR_RETURN(names, list_directory(where));
  for (std::string& name : names) {
    if (name.starts_with('.') || !folder_exists(where / name)) continue;
    if (!formats::has_stream_index(where / name)) return std::vector<std::string>();
    folders.push_back(std::move(name));
  }
  return folders;
}

// Those that an index.json names, in the folder itself or in one for each split.
Result<std::vector<Foreign>> shards_of_index(const Path& where) {
  OK_OR_RETURN(folders, folders_of_index(where));
  if (folders.empty()) folders.push_back({});
  std::vector<Foreign> shards;
  for (const std::string& folder : folders) {
    OK_OR_RETURN(index, formats::read_stream_index(folder.empty() ? where : where / folder));
    for (formats::StreamShard& shard : index.shards) {
      if (shard.samples == 0) continue;
      Foreign& foreign = shards.emplace_back();
      foreign.file = folder.empty() ? shard.file : format("{}/{}", folder, shard.file);
      foreign.split = folder.empty() ? "all" : folder;
      foreign.of_index = std::move(shard);
    }
  }
  if (shards.empty()) return invalid("{}: its index.json names no samples", printable(where.string()));
  return shards;
}

// Whether it is a folder of MDS shards or LitData chunks with their index, or of such folders.
bool has_index(const Path& where) {
  if (!folder_exists(where)) return false;
  if (formats::has_stream_index(where)) return true;
  const auto folders = folders_of_index(where);
  return folders.ok() && !folders->empty();
}

// Parquet in folders. What is passed over for its path is added to `facts`.
Result<std::vector<Foreign>> shards_of_tree(const Path& where, const std::string& condition,
                                            std::optional<TableFacts>& facts) {
  OK_OR_RETURN(tree, list_tables(where, condition));
  std::vector<Foreign> shards;
  for (TreeTable& table : tree.tables) {
    Foreign& shard = shards.emplace_back();
    shard.file = table.path.name;
    shard.split = std::move(table.split);
    shard.table = std::move(table.path);
  }
  if (tree.passed_over > 0) add_to(facts, {.files_passed_over = tree.passed_over});
  if (shards.empty() && facts) return nothing_chosen(printable(where.string()), *facts);
  return shards;
}

// Rows of NumPy's files.
Result<std::vector<Foreign>> shards_of_rows(const Path& folder, const std::vector<std::string>& names) {
  OK_OR_RETURN(sets, npy_sets(folder, names));
  std::vector<Foreign> shards;
  for (NpySet& set : sets) {
    Foreign& shard = shards.emplace_back();
    shard.file = set.file;
    shard.split = set.split;
    shard.rows = std::move(set);
  }
  return shards;
}

Result<std::vector<Foreign>> foreign_shards(const Path& where, const std::string& condition,
                                            std::optional<TableFacts>& facts) {
  if (has_index(where)) return shards_of_index(where);
  if (folder_exists(where) && is_table_tree(where)) return shards_of_tree(where, condition, facts);
  std::vector<Foreign> shards;
  const std::string name = where.filename().string();
  if (!folder_exists(where) && is_numpys(name)) return shards_of_rows(where.parent_path(), {name});
  if (!folder_exists(where) || is_zarr(name)) {
    shards.push_back({.file = name});
    return shards;
  }
  OK_OR_RETURN(names, list_directory(where));
  for (std::string& name : names) {
    if (!name.starts_with('.') && is_shard(name) && !is_hdf5_view(name))
      shards.push_back({.file = std::move(name)});
  }
  if (shards.empty()) return shards_of_rows(where, names);
  for (const Foreign& shard : shards) {
    if (kind_of_shard(shard.file) == kind_of_shard(shards[0].file)) continue;
    return invalid("{}: its shards are of two kinds: {} and {}", printable(where.string()),
                   printable(shards[0].file), printable(shard.file));
  }
  return shards;
}

std::vector<ShardScan*> scans_of(std::vector<Foreign>& shards) {
  std::vector<ShardScan*> scans;
  for (Foreign& shard : shards) scans.push_back(&shard.shard.scan);
  return scans;
}

// Options that choose rows and columns are for tables.
Status check_choice(const SourceOptions& options, std::span<const Foreign> shards) {
  if (!options.table.is_set() || (!shards.empty() && is_parquet(shards[0].file))) return {};
  return no_table(printable(options.where));
}

Result<Source> take_foreign_shards(const SourceOptions& options, std::shared_ptr<Pace> pace,
                                   Progress& progress) {
  const Path where = options.where;
  std::optional<TableFacts> facts;
  OK_OR_RETURN(shards, foreign_shards(where, options.table.where, facts));
  RETURN_IF_ERROR(check_choice(options, shards));
  const bool is_one = !folder_exists(where) || is_zarr(where.filename().string());
  const Path folder = is_one ? where.parent_path() : where;
  RETURN_IF_ERROR(scan_all(folder, shards, options, progress));
  Taker taker(folder, is_tfrecord(shards[0].file) ? Proof::record : Proof::none, std::move(pace));
  OK_OR_RETURN(classes, number_classes(scans_of(shards)));
  for (Foreign& shard : shards) {
    RETURN_IF_ERROR(take_foreign(shard, taker));
    shard.shard.scan = {};
  }
  Source& source = taker.source();
  if (facts) add_to(source.table, *facts);
  source.classes = std::move(classes);
  source.could_choose = is_parquet(shards[0].file) && !source.table && !source.not_carried.empty();
  if (source.files == 0 && source.table) return nothing_chosen(printable(where.string()), *source.table);
  return taker.finish(where);
}

// Whether a folder holds shards, beside files about them, and neither folders nor images. Stops at the first
// of those.
bool is_folder_of_shards(const Path& folder) {
  std::error_code error;
  std::error_code ignored;
  bool has_shard = false;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with('.')) continue;
    const bool is_folder = at->is_directory(ignored) && !is_zarr(name);
    if (is_folder || is_image_extension(extension_of(name))) return false;
    has_shard = has_shard || is_shard(name) || is_numpys(name);
  }
  return has_shard && !error;
}

// Or what will be one: an unfinished packing is refused as such.
bool is_dataset(const Path& folder) {
  const bool is_whole =
      path_exists(folder / formats::kManifestFile) && path_exists(folder / formats::kIndexFile);
  return is_whole || path_exists(folder / formats::kPendingFolder);
}

}  // namespace

Result<bool> is_source_of_shards(const SourceOptions& options) {
  const Path where = options.where;
  const std::string name = where.filename().string();
  if (is_zarr(name) || is_hdf5(name)) return true;
  if (is_mds(name) && !folder_exists(where)) return true;
  if (is_numpys(name) && !folder_exists(where)) return true;
  if (!folder_exists(where)) {
    if (!is_parquet(name)) return is_tfrecord(name);
    return options.table.is_set() ? Result<bool>(true) : holds_samples(where);
  }
  if (is_dataset(where)) return true;
  // With this layout a folder's files are what they are.
  return options.layout != SourceLayout::files &&
         (is_folder_of_shards(where) || has_index(where) || is_table_tree(where));
}

Result<Source> list_from_shards(const SourceOptions& options, std::shared_ptr<Pace> pace,
                                Progress& progress) {
  if (is_dataset(options.where)) {
    OK_OR_RETURN(opened, formats::open_dataset(options.where));
    const auto& sections = opened.index.sections();
    const bool is_packed =
        std::any_of(sections.begin(), sections.end(), [](const auto& s) { return s.chunks() != nullptr; });
    for (const auto& section : sections) {
      if (!section.chunks() || !section.chunks()->has_windows()) continue;
      const bool is_table = section.chunks()->has_columns();
      if (is_table && options.table.is_set()) continue;
      if (is_table) {
        return invalid("{}: its arrays are columns side by side, as its index says, and not in its files",
                       printable(options.where))
            .cure("stoker data convert SOURCE OUT --tensor NAME=COLUMN,..., as it was indexed");
      }
      return invalid("{}: its samples are windows over arrays: they are read where they lie, and not packed",
                     printable(options.where))
          .cure("the shards without {} and {}, for their rows", formats::kManifestFile, formats::kIndexFile);
    }
    // What is packed is unpacked once, as if it had no index; so are tables of which something is chosen.
    if (!is_packed && !options.table.is_set())
      return take_dataset(options.where, opened, std::move(pace), progress);
  }
  return take_foreign_shards(options, std::move(pace), progress);
}

}  // namespace stoker::data
