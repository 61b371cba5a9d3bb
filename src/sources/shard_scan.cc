#include "sources/shard_scan.h"

#include <algorithm>
#include <utility>

#include "archive/decompress_file.h"
#include "archive/tar.h"
#include "archive/tfrecord.h"
#include "sources/arrays/array_scan.h"
#include "sources/foreign_example.h"
#include "sources/split_name.h"
#include "sources/streams/stream_scan.h"
#include "sources/tables/class_names.h"
#include "sources/tables/parquet_scan.h"
#include "sources/tables/row_selection.h"
#include "sources/tables/table_scan.h"

namespace stoker::sources {

namespace {

// Key and extension; otherwise the reason why the member belongs to no sample.
std::string_view split_member_name(std::string_view name, std::string_view* key,
                                   std::string_view* extension) {
  if (name.starts_with("__")) {
    const std::string_view top = name.substr(0, name.find('/'));
    if (top.size() >= 4 && top.ends_with("__")) return "name __...__";
  }
  const std::size_t slash = name.rfind('/');
  const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', begin);
  if (dot == begin) return "hidden name";
  if (dot == std::string_view::npos) return "no extension";
  *key = name.substr(0, dot);
  *extension = name.substr(dot + 1);
  return {};
}

// Adds a file to a sample. Invalid for a duplicate extension.
Status add_member(std::string_view subject, ShardMember member, ShardSample& sample) {
  if (std::any_of(sample.members.begin(), sample.members.end(),
                  [&](const ShardMember& m) { return m.extension == member.extension; })) {
    return invalid("{}: sample '{}' has two files '{}'", subject, printable(sample.key),
                   printable(member.extension));
  }
  sample.members.push_back(std::move(member));
  return {};
}

Result<ShardScan> scan_tar(const archive::ReadAt& read, std::uint64_t size, const std::string& subject) {
  archive::TarReader reader(read, size, subject);
  ShardScan scan;
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(member, reader.next());
    if (!member) break;
    scan.end = member->data_offset +
               (member->size + archive::kTarBlock - 1) / archive::kTarBlock * archive::kTarBlock;
    std::string_view key;
    std::string_view extension;
    if (member->kind == archive::TarKind::directory) continue;
    const std::string_view why = member->kind == archive::TarKind::file
                                     ? split_member_name(member->name, &key, &extension)
                                     : "link or device";
    if (!why.empty()) {
      ++scan.skipped_members[std::string(why)];
      continue;
    }
    if (!member->unsafe.empty()) {
      return invalid("{}: member '{}': {}", subject, printable(member->name.substr(0, 80)), member->unsafe);
    }
    if (scan.samples.empty() || scan.samples.back().key != key) {
      scan.samples.emplace_back().key = key;
    }
    STOKER_RETURN_IF_ERROR(add_member(subject,
                                      {.name = member->name,
                                       .extension = to_lower(extension),
                                       .header_offset = member->header_offset,
                                       .data_offset = member->data_offset,
                                       .bytes = member->size},
                                      scan.samples.back()));
  }
  if (!reader.has_end_mark()) {
    return corrupt("{}: has no end-of-archive marker: its last members may be missing", subject);
  }
  return scan;
}

Status check_extensions(std::string_view subject, ShardSample& sample) {
  std::vector<ShardMember> members = std::exchange(sample.members, {});
  for (ShardMember& member : members) STOKER_RETURN_IF_ERROR(add_member(subject, std::move(member), sample));
  return {};
}

// `stem` prefixes the keys of samples without one.
Result<ShardScan> scan_records(const archive::ReadAt& read, std::uint64_t size, const std::string& subject,
                               const std::string& stem) {
  archive::TfRecordReader reader(read, size, subject);
  ShardScan scan;
  scan.end = size;
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(record, reader.next());
    if (!record) return scan;
    if (record->files.empty()) return invalid("{}: byte {}: a record without bytes", subject, record->offset);
    if (record->key.empty()) {
      STOKER_ASSIGN_OR_RETURN(
          foreign, sample_from_example(*record, read, format("{}/{:08}", stem, scan.samples.size()),
                                       scan.skipped_fields));
      scan.samples.push_back(std::move(foreign));
      STOKER_RETURN_IF_ERROR(check_extensions(subject, scan.samples.back()));
      continue;
    }
    ShardSample& sample = scan.samples.emplace_back();
    sample.key = record->key;
    sample.label = record->label;
    sample.offset = record->offset;
    sample.bytes = record->bytes;
    for (const archive::RecordNumber& number : record->numbers) ++scan.skipped_fields[number.name];
    for (const std::string& name : record->unsupported_features) ++scan.skipped_fields[name];
    for (const archive::RecordFile& file : record->files) {
      STOKER_RETURN_IF_ERROR(add_member(subject,
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

bool is_numpy_file(std::string_view file) { return is_npy(file) || is_npz(file); }

bool is_shard(std::string_view file) {
  const std::string_view plain = strip_compression(file);
  return plain.ends_with(".tar") || file.ends_with(".tgz") || is_tfrecord(file) || is_parquet(file) ||
         is_hdf5(file) || is_zarr(file) || is_mds(file);
}

dataset::ContainerKind kind_of_shard(std::string_view file) {
  if (is_parquet(file)) return dataset::ContainerKind::parquet;
  if (is_hdf5(file)) return dataset::ContainerKind::hdf5;
  if (is_zarr(file)) return dataset::ContainerKind::zarr;
  if (is_mds(file)) return dataset::ContainerKind::mds;
  if (is_numpy_file(file)) return dataset::ContainerKind::npy;
  return is_tfrecord(file) ? dataset::ContainerKind::tfrecord : dataset::ContainerKind::tar;
}

bool is_tfrecord(std::string_view file) {
  file = strip_compression(file);
  return file.ends_with(".tfrecord") || file.ends_with(".tfrecords") || !strip_shard_number(file).empty();
}

namespace {

archive::ReadAt reader_of(const File& file) {
  return [&file](std::uint64_t offset, std::span<std::byte> out) { return file.read_at(offset, out); };
}

Result<ShardScan> scan_plain_parquet(const TableFile& table, const SelectedRows& rows,
                                     const archive::ReadAt& read, std::uint64_t size,
                                     const ScanNames& names) {
  STOKER_ASSIGN_OR_RETURN(scan, scan_parquet(table, rows, read, names));
  scan.end = size;
  scan.bytes = size;
  return scan;
}

ScanNames names_of(const Path& file, const TablePath& path) {
  return {printable(file.string()), printable(path.name.empty() ? file.filename().string() : path.name)};
}

Status with_convert_cure(Status why, const Path& path) {
  return std::move(why).cure("stoker data convert {} OUT", shell_quote(path.parent_path().string()));
}

// Scans a file with random access.
Result<ShardScan> scan_file(const File& file, const Path& path) {
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  const std::string subject = printable(path.string());
  const std::string stem = printable(path.filename().string());
  const archive::ReadAt read = reader_of(file);
  Result<ShardScan> scan = ShardScan();
  switch (kind_of_shard(path.filename().string())) {
    case dataset::ContainerKind::tar:
      scan = scan_tar(read, size, subject);
      break;
    case dataset::ContainerKind::tfrecord:
      scan = scan_records(read, size, subject, stem);
      break;
    case dataset::ContainerKind::hdf5:
    case dataset::ContainerKind::zarr:
    case dataset::ContainerKind::zarr_2:
      return scan_arrays(path, stem);
    case dataset::ContainerKind::mds:
      scan = scan_mds(read, size, subject, stem);
      if (!scan.ok() && scan.status().code() == Code::invalid && scan.status().cure().empty())
        return with_convert_cure(scan.status(), path);
      break;
    case dataset::ContainerKind::npy:
      return invalid("{}: NumPy files are read by folder, not one by one", subject);
    case dataset::ContainerKind::parquet: {
      STOKER_ASSIGN_OR_RETURN(parquet, parquet::ParquetFile::open(read, size, subject));
      const TablePath none;
      scan = scan_plain_parquet(TableFile(parquet, none), std::nullopt, read, size, {subject, stem});
      break;
    }
  }
  if (!scan.ok()) STOKER_RETURN_IF_ERROR(archive::reject_other_compression(file, subject));
  if (scan.ok()) scan->bytes = size;
  return scan;
}

}  // namespace

Result<ShardScan> scan_shard(const Path& path) {
  if (folder_exists(path)) return scan_arrays(path, printable(path.filename().string()));
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  // The first bytes of an MDS shard may look like gzip.
  const std::string name = path.filename().string();
  Result<archive::CompressionFormat> packing = archive::CompressionFormat::none;
  if (!is_mds(name)) packing = archive::detect_compression(file);
  if (!packing.ok()) return packing.status();
  const bool is_packed =
      is_mds(name) ? !name.ends_with(".mds") : *packing != archive::CompressionFormat::none;
  if (!is_packed) return scan_file(file, path);
  const std::string_view by = is_mds(name) ? std::string_view(name).substr(name.rfind('.') + 1)
                              : *packing == archive::CompressionFormat::gzip ? "gzip"
                                                                             : "zstd";
  return with_convert_cure(invalid("{}: is compressed ({}): its samples cannot be read individually",
                                   printable(path.string()), by),
                           path);
}

namespace {

// Scans a table whose bytes or numbers are read in place.
Result<ShardScan> scan_table(const Path& path, const TableSelection& choice) {
  const ScanNames names = names_of(path, choice.path);
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  STOKER_ASSIGN_OR_RETURN(opened, parquet::ParquetFile::open(reader_of(file), size, names.subject));
  const TableFile table(opened, choice.path);
  if (choice.options.makes_arrays() || has_numbers_only(opened))
    return scan_rows({table, names.subject, names.stem}, size, choice.options, NoProgress());
  STOKER_ASSIGN_OR_RETURN(filter, parse_filter(table, choice.options.where, names.subject));
  SelectedRows rows;
  TableFacts facts{.files = 1};
  if (filter) {
    STOKER_ASSIGN_OR_RETURN(selected, selected_rows(table, *filter, names.subject, facts, NoProgress()));
    rows = std::move(selected);
  }
  Result<ShardScan> scan = scan_plain_parquet(table, rows, reader_of(file), size, names);
  if (!scan.ok() && scan.status().code() == Code::invalid) {  // its bytes are not contiguous
    STOKER_ASSIGN_OR_RETURN(shard, codec::ShardFile::open(path));
    scan = scan_packed_parquet(table, rows, shard, names);
  }
  if (scan.ok() && filter) scan->table = std::move(facts);
  return scan;
}

}  // namespace

Result<ShardScan> scan_for_index(const Path& path, const TableSelection& choice) {
  const std::string name = path.filename().string();
  if (is_parquet(name) && path_exists(path)) return scan_table(path, choice);
  if (choice.options.is_set()) return not_a_table(printable(path.string()));
  Result<ShardScan> scan = scan_shard(path);
  // Invalid: its bytes are not contiguous; NotFound: it may have rows of arrays.
  const bool may_be_packed =
      !scan.ok() && (scan.status().code() == Code::invalid || scan.status().code() == Code::not_found);
  if (!may_be_packed || !path_exists(path)) return scan;
  return is_hdf5(name) || is_zarr(name) ? scan_chunks(path, printable(name)) : scan;
}

namespace {

// Unpacks into an unnamed file if the values cannot be read in place.
Result<UnpackedShard> scan_or_unpack_table(const File& opened, const Path& path, const Path& scratch,
                                           const TableSelection& choice, Progress& progress) {
  const ScanNames names = names_of(path, choice.path);
  STOKER_ASSIGN_OR_RETURN(size, opened.size());
  STOKER_ASSIGN_OR_RETURN(parquet, parquet::ParquetFile::open(reader_of(opened), size, names.subject));
  const TableFile table(parquet, choice.path);
  const bool is_selected = choice.options.is_set() || has_numbers_only(parquet);
  if (!is_selected) {
    Result<ShardScan> scan = scan_plain_parquet(table, std::nullopt, reader_of(opened), size, names);
    if (scan.ok()) return UnpackedShard{std::move(*scan), std::nullopt, std::nullopt};
    if (scan.status().code() != Code::invalid) return scan.status();
  }
  STOKER_ASSIGN_OR_RETURN(file, archive::create_unnamed_file(scratch));
  Result<ShardScan> scan =
      is_selected ? unpack_rows({table, names.subject, names.stem}, choice.options, file, progress)
                  : unpack_parquet(table, names, file, progress);
  if (!scan.ok()) return scan.status();
  return UnpackedShard{std::move(*scan), std::move(file), std::nullopt};
}

}  // namespace

Result<UnpackedShard> scan_or_unpack(const Path& path, const Path& scratch, const TableSelection& choice,
                                     Progress& progress) {
  const std::string name = path.filename().string();
  const std::string stem = printable(name);
  if (folder_exists(path)) return unpack_arrays(path, stem, scratch, progress);
  if (is_mds(name)) return unpack_mds(path, scratch, progress);
  STOKER_ASSIGN_OR_RETURN(opened, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(packing, archive::detect_compression(opened));
  if (is_parquet(name) && packing == archive::CompressionFormat::none)
    return scan_or_unpack_table(opened, path, scratch, choice, progress);
  UnpackedShard shard;
  if (packing != archive::CompressionFormat::none) {
    STOKER_ASSIGN_OR_RETURN(file,
                            archive::decompress_file(std::move(opened), {scratch, std::nullopt}, progress));
    STOKER_ASSIGN_OR_RETURN(scan, scan_file(file, path));
    shard.scan = std::move(scan);
    shard.file = std::move(file);
    return shard;
  }
  Result<ShardScan> scan = scan_file(opened, path);
  // Invalid: the values are not contiguous.
  const bool is_packed = !scan.ok() && scan.status().code() == Code::invalid;
  const bool has_rows = !scan.ok() && scan.status().code() == Code::not_found;  // may have rows of arrays
  if ((is_packed || has_rows) && (is_hdf5(name) || is_zarr(name)))
    return unpack_arrays(path, stem, scratch, progress);
  if (!scan.ok()) return scan.status();
  shard.scan = std::move(*scan);
  return shard;
}

}  // namespace stoker::sources
