#include "data/look/shard_scan.h"

#include <algorithm>
#include <utility>

#include "data/look/arrays/array_scan.h"
#include "data/look/foreign_example.h"
#include "data/look/parquet_scan.h"
#include "data/look/streams/stream_scan.h"
#include "data/look/tables/class_names.h"
#include "data/look/tables/row_choice.h"
#include "data/look/tables/table_scan.h"
#include "format/expanded_file.h"
#include "format/tar.h"
#include "format/tfrecord.h"

namespace stoker::data {

namespace {

// Key and extension, or nothing for a member that makes no sample.
bool take_apart(std::string_view name, std::string_view* key, std::string_view* extension) {
  if (name.starts_with("__")) {
    const std::string_view top = name.substr(0, name.find('/'));
    if (top.size() >= 4 && top.ends_with("__")) return false;
  }
  const std::size_t slash = name.rfind('/');
  const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', begin);
  if (dot == std::string_view::npos || dot == begin) return false;
  *key = name.substr(0, dot);
  *extension = name.substr(dot + 1);
  return true;
}

// A file of one sample, by that sample's rules.
Status add_member(std::string_view subject, ShardMember member, ShardSample& sample) {
  if (std::any_of(sample.members.begin(), sample.members.end(),
                  [&](const ShardMember& m) { return m.extension == member.extension; })) {
    return invalid("{}: sample '{}' has two files '{}'", subject, printable(sample.key),
                   printable(member.extension));
  }
  sample.members.push_back(std::move(member));
  return {};
}

Result<ShardScan> scan_tar(const formats::ReadAt& read, std::uint64_t size, const std::string& subject) {
  formats::TarReader reader(read, size, subject);
  ShardScan scan;
  for (;;) {
    OK_OR_RETURN(member, reader.next());
    if (!member) break;
    scan.end = member->data_offset +
               (member->size + formats::kTarBlock - 1) / formats::kTarBlock * formats::kTarBlock;
    std::string_view key;
    std::string_view extension;
    if (member->kind != formats::TarKind::file || !take_apart(member->name, &key, &extension)) {
      if (member->kind != formats::TarKind::directory) ++scan.not_taken["members that are no sample's files"];
      continue;
    }
    if (!member->unsafe.empty()) {
      return invalid("{}: member '{}': {}", subject, printable(member->name.substr(0, 80)), member->unsafe);
    }
    if (scan.samples.empty() || scan.samples.back().key != key) {
      scan.samples.emplace_back().key = key;
    }
    RETURN_IF_ERROR(add_member(subject,
                               {.name = member->name,
                                .extension = to_lower(extension),
                                .header_offset = member->header_offset,
                                .data_offset = member->data_offset,
                                .bytes = member->size},
                               scan.samples.back()));
  }
  if (!reader.ended_cleanly()) {
    return corrupt("{}: has no end mark: its last members may be missing", subject);
  }
  return scan;
}

Status check_extensions(std::string_view subject, ShardSample& sample) {
  std::vector<ShardMember> members = std::exchange(sample.members, {});
  for (ShardMember& member : members) RETURN_IF_ERROR(add_member(subject, std::move(member), sample));
  return {};
}

// `stem` begins the keys of samples that have none.
Result<ShardScan> scan_records(const formats::ReadAt& read, std::uint64_t size, const std::string& subject,
                               const std::string& stem) {
  formats::TfRecordReader reader(read, size, subject);
  ShardScan scan;
  scan.end = size;
  for (;;) {
    OK_OR_RETURN(record, reader.next());
    if (!record) return scan;
    if (record->files.empty()) return invalid("{}: byte {}: a record without bytes", subject, record->offset);
    if (record->key.empty()) {
      OK_OR_RETURN(foreign, sample_of_example(*record, read, format("{}/{:08}", stem, scan.samples.size()),
                                              scan.not_taken));
      scan.samples.push_back(std::move(foreign));
      RETURN_IF_ERROR(check_extensions(subject, scan.samples.back()));
      continue;
    }
    ShardSample& sample = scan.samples.emplace_back();
    sample.key = record->key;
    sample.label = record->label;
    sample.offset = record->offset;
    sample.bytes = record->bytes;
    for (const formats::RecordNumber& number : record->numbers) ++scan.not_taken[number.name];
    for (const std::string& name : record->others) ++scan.not_taken[name];
    for (const formats::RecordFile& file : record->files) {
      RETURN_IF_ERROR(add_member(subject,
                                 {.name = format("{}.{}", record->key, file.name),
                                  .extension = file.name,
                                  .header_offset = record->offset,
                                  .data_offset = file.offset,
                                  .bytes = file.bytes},
                                 sample));
    }
  }
}

}  // namespace

namespace {

// "x.tar" of "x.tar.gz", "x.tgz" and "x.tar.zst".
std::string_view without_packing(std::string_view file) {
  for (std::string_view ending : {".gz", ".zst"}) {
    if (file.ends_with(ending)) return file.substr(0, file.size() - ending.size());
  }
  return file;
}

}  // namespace

bool is_parquet(std::string_view file) { return file.ends_with(".parquet"); }

bool is_hdf5(std::string_view file) { return file.ends_with(".h5") || file.ends_with(".hdf5"); }

bool is_zarr(std::string_view file) { return file.ends_with(".zarr") || file.ends_with(".zarr.zip"); }

bool is_mds(std::string_view file) {
  for (std::string_view ending : {".mds", ".mds.zstd", ".mds.gz", ".mds.br", ".mds.bz2", ".mds.snappy"}) {
    if (file.ends_with(ending)) return true;
  }
  return false;
}

bool is_npy(std::string_view file) { return file.ends_with(".npy"); }

bool is_npz(std::string_view file) { return file.ends_with(".npz"); }

bool is_numpys(std::string_view file) { return is_npy(file) || is_npz(file); }

bool is_shard(std::string_view file) {
  const std::string_view plain = without_packing(file);
  return plain.ends_with(".tar") || file.ends_with(".tgz") || is_tfrecord(file) || is_parquet(file) ||
         is_hdf5(file) || is_zarr(file) || is_mds(file);
}

ContainerKind kind_of_shard(std::string_view file) {
  if (is_parquet(file)) return ContainerKind::parquet;
  if (is_hdf5(file)) return ContainerKind::hdf5;
  if (is_zarr(file)) return ContainerKind::zarr;
  if (is_mds(file)) return ContainerKind::mds;
  if (is_numpys(file)) return ContainerKind::npy;
  return is_tfrecord(file) ? ContainerKind::tfrecord : ContainerKind::tar;
}

bool is_tfrecord(std::string_view file) {
  file = without_packing(file);
  return file.ends_with(".tfrecord") || file.ends_with(".tfrecords") || !without_count(file).empty();
}

std::string_view without_count(std::string_view file) {
  // "-00000-of-01024"
  const std::size_t of = file.rfind("-of-");
  if (of == std::string_view::npos) return {};
  const auto is_number = [](std::string_view text) {
    return text.size() >= 5 && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const std::size_t dash = file.substr(0, of).rfind('-');
  if (dash == std::string_view::npos || dash == 0) return {};
  const bool is_counted = is_number(file.substr(dash + 1, of - dash - 1)) && is_number(file.substr(of + 4));
  return is_counted ? file.substr(0, dash) : std::string_view();
}

std::string split_of_shard(std::string_view file) {
  if (is_mds(file)) return "all";  // theirs is the folder's name
  file = without_packing(file);
  for (const std::string_view ending : {".parquet", ".h5", ".hdf5", ".zarr", ".zarr.zip", ".npz"}) {
    if (!file.ends_with(ending)) continue;
    file.remove_suffix(ending.size());
    break;
  }
  if (const std::string_view counted = without_count(file); !counted.empty()) file = counted;
  std::string_view stem =
      file.substr(0, std::min({file.rfind(".tar"), file.rfind(".tgz"), file.rfind(".tfrecord")}));
  while (!stem.empty() && stem.back() >= '0' && stem.back() <= '9') stem.remove_suffix(1);
  while (!stem.empty() && (stem.back() == '-' || stem.back() == '_' || stem.back() == '.'))
    stem.remove_suffix(1);
  return stem.empty() ? "all" : std::string(stem);
}

namespace {

formats::ReadAt reader_of(const File& file) {
  return [&file](std::uint64_t offset, std::span<std::byte> out) { return file.read_at(offset, out); };
}

// What messages, and the keys of rows that have none, begin with.
struct Names {
  std::string subject;
  std::string stem;
};

Result<ShardScan> scan_plain_parquet(const formats::ReadAt& read, std::uint64_t size, const Names& names,
                                     const TablePath& path) {
  OK_OR_RETURN(file, formats::ParquetFile::open(read, size, names.subject));
  OK_OR_RETURN(scan, scan_parquet(TableFile(file, path), read, names.subject, names.stem));
  scan.end = size;
  scan.bytes = size;
  return scan;
}

Names names_of(const Path& file, const TablePath& path) {
  return {printable(file.string()), printable(path.name.empty() ? file.filename().string() : path.name)};
}

Status converted_first(Status why, const Path& path) {
  return std::move(why).cure("stoker data convert {} OUT", shell_quote(path.parent_path().string()));
}

// Of a file that can be read at any place.
Result<ShardScan> scan_file(const File& file, const Path& path) {
  OK_OR_RETURN(size, file.size());
  const std::string subject = printable(path.string());
  const std::string stem = printable(path.filename().string());
  const formats::ReadAt read = reader_of(file);
  Result<ShardScan> scan = ShardScan();
  switch (kind_of_shard(path.filename().string())) {
    case ContainerKind::tar:
      scan = scan_tar(read, size, subject);
      break;
    case ContainerKind::tfrecord:
      scan = scan_records(read, size, subject, stem);
      break;
    case ContainerKind::hdf5:
    case ContainerKind::zarr:
    case ContainerKind::zarr_2:
      return scan_arrays(path, stem);
    case ContainerKind::mds:
      scan = scan_mds(read, size, subject, stem);
      if (!scan.ok() && scan.status().code() == Code::invalid && scan.status().cure().empty())
        return converted_first(scan.status(), path);
      break;
    case ContainerKind::npy:
      return invalid("{}: samples of NumPy's files are found by the folder they are in", subject);
    case ContainerKind::parquet:
      scan = scan_plain_parquet(read, size, {subject, stem}, {});
      break;
  }
  if (scan.ok()) scan->bytes = size;
  return scan;
}

}  // namespace

Result<ShardScan> scan_shard(const Path& path) {
  if (folder_exists(path)) return scan_arrays(path, printable(path.filename().string()));
  OK_OR_RETURN(file, File::open_read(path));
  // The number at the beginning of an MDS shard may look like gzip.
  const std::string name = path.filename().string();
  Result<formats::Packing> packing = formats::Packing::none;
  if (!is_mds(name)) packing = formats::packing_of(file);
  if (!packing.ok()) return packing.status();
  const bool is_packed = is_mds(name) ? !name.ends_with(".mds") : *packing != formats::Packing::none;
  if (!is_packed) return scan_file(file, path);
  const std::string_view by = is_mds(name) ? std::string_view(name).substr(name.rfind('.') + 1)
                              : *packing == formats::Packing::gzip ? "gzip"
                                                                   : "zstd";
  return converted_first(
      invalid("{}: is compressed ({}): no sample of it can be read by itself", printable(path.string()), by),
      path);
}

namespace {

// Keeps the rows that the condition chooses: each is a sample.
Status choose_samples(const TableFile& table, const std::string& where, const std::string& subject,
                      ShardScan& scan) {
  OK_OR_RETURN(filter, filter_of(table, where, subject));
  if (!filter) return {};
  scan.table = TableFacts{.files = 1};
  OK_OR_RETURN(rows, chosen_rows(table, *filter, subject, *scan.table, NoProgress()));
  std::vector<ShardSample> chosen;
  for (const std::uint64_t row : rows) {
    if (row < scan.samples.size()) chosen.push_back(std::move(scan.samples[row]));
  }
  scan.samples = std::move(chosen);
  return {};
}

// Of a table whose bytes or numbers are read where they lie.
Result<ShardScan> scan_table(const Path& path, const TableChoice& choice) {
  const Names names = names_of(path, choice.path);
  OK_OR_RETURN(file, File::open_read(path));
  OK_OR_RETURN(size, file.size());
  OK_OR_RETURN(opened, formats::ParquetFile::open(reader_of(file), size, names.subject));
  const TableFile table(opened, choice.path);
  if (choice.options.makes_arrays() || has_numbers_only(opened))
    return scan_rows({table, names.subject, names.stem}, size, choice.options, NoProgress());
  Result<ShardScan> scan = scan_plain_parquet(reader_of(file), size, names, choice.path);
  if (!scan.ok() && scan.status().code() == Code::invalid) {  // its bytes lie nowhere by themselves
    OK_OR_RETURN(shard, formats::ShardFile::open(path));
    scan = scan_packed_parquet(table, shard, names.subject, names.stem);
  }
  if (scan.ok()) RETURN_IF_ERROR(choose_samples(table, choice.options.where, names.subject, *scan));
  return scan;
}

}  // namespace

Result<ShardScan> scan_for_index(const Path& path, const TableChoice& choice) {
  const std::string name = path.filename().string();
  if (is_parquet(name) && path_exists(path)) return scan_table(path, choice);
  if (choice.options.is_set()) return no_table(printable(path.string()));
  Result<ShardScan> scan = scan_shard(path);
  // Invalid: its bytes lie nowhere by themselves; NotFound: it has rows of arrays, perhaps.
  const bool may_be_packed =
      !scan.ok() && (scan.status().code() == Code::invalid || scan.status().code() == Code::not_found);
  if (!may_be_packed || !path_exists(path)) return scan;
  return is_hdf5(name) || is_zarr(name) ? scan_chunks(path, printable(name)) : scan;
}

namespace {

// Into a file without a name, where its values cannot be read where they lie.
Result<UnpackedShard> scan_or_unpack_table(const File& opened, const Path& path, const Path& scratch,
                                           const TableChoice& choice, Progress& progress) {
  const Names names = names_of(path, choice.path);
  OK_OR_RETURN(size, opened.size());
  OK_OR_RETURN(parquet, formats::ParquetFile::open(reader_of(opened), size, names.subject));
  const TableFile table(parquet, choice.path);
  const bool has_choice = choice.options.is_set() || has_numbers_only(parquet);
  if (!has_choice) {
    Result<ShardScan> scan = scan_plain_parquet(reader_of(opened), size, names, choice.path);
    if (scan.ok()) return UnpackedShard{std::move(*scan), std::nullopt, std::nullopt};
    if (scan.status().code() != Code::invalid) return scan.status();
  }
  OK_OR_RETURN(file, formats::nameless_file(scratch));
  Result<ShardScan> scan =
      has_choice ? unpack_rows({table, names.subject, names.stem}, choice.options, file, progress)
                 : unpack_parquet(table, names.subject, names.stem, file, progress);
  if (!scan.ok()) return scan.status();
  return UnpackedShard{std::move(*scan), std::move(file), std::nullopt};
}

}  // namespace

Result<UnpackedShard> scan_or_unpack(const Path& path, const Path& scratch, const TableChoice& choice,
                                     Progress& progress) {
  const std::string name = path.filename().string();
  const std::string stem = printable(name);
  if (folder_exists(path)) return unpack_arrays(path, stem, scratch, progress);
  if (is_mds(name)) return unpack_mds(path, scratch, progress);
  OK_OR_RETURN(opened, File::open_read(path));
  OK_OR_RETURN(packing, formats::packing_of(opened));
  if (is_parquet(name) && packing == formats::Packing::none)
    return scan_or_unpack_table(opened, path, scratch, choice, progress);
  UnpackedShard shard;
  if (packing != formats::Packing::none) {
    OK_OR_RETURN(file, formats::expanded(std::move(opened), {scratch, std::nullopt}, progress));
    OK_OR_RETURN(scan, scan_file(file, path));
    shard.scan = std::move(scan);
    shard.file = std::move(file);
    return shard;
  }
  Result<ShardScan> scan = scan_file(opened, path);
  // Invalid: that values lie nowhere by themselves.
  const bool is_packed = !scan.ok() && scan.status().code() == Code::invalid;
  const bool has_rows = !scan.ok() && scan.status().code() == Code::not_found;  // of arrays, perhaps
  if ((is_packed || has_rows) && (is_hdf5(name) || is_zarr(name)))
    return unpack_arrays(path, stem, scratch, progress);
  if (!scan.ok()) return scan.status();
  shard.scan = std::move(*scan);
  return shard;
}

}  // namespace stoker::data
