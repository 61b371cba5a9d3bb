#include "sources/streams/stream_scan.h"

#include <algorithm>

#include "archive/decompress_file.h"
#include "archive/streams/stream_rows.h"
#include "archive/streams/unpack_table.h"
#include "base/hashes/file_hash.h"
#include "base/language/counted.h"
#include "sources/streams/stream_row_converter.h"

namespace stoker::sources {

namespace {

using archive::StreamColumn;
using archive::StreamLayout;
using archive::StreamOffsets;
using archive::StreamShard;

archive::ReadAt reader_of(const File& file) {
  return [&file](std::uint64_t offset, std::span<std::byte> out) { return file.read_at(offset, out); };
}

// "shard.00000" of "shard.00000.mds.zstd", "chunk-0-0" of "chunk-0-0.zstd.bin".
std::string stem_of(std::string_view file) {
  for (const std::string_view ending : {".mds", ".zstd", ".bin"}) file = file.substr(0, file.rfind(ending));
  return printable(file);
}

// A sample must not have two files with one extension.
Status check_extensions(const ShardSample& sample, const std::string& subject) {
  for (auto member = sample.members.begin(); member != sample.members.end(); ++member) {
    const bool has_twin = std::any_of(member + 1, sample.members.end(), [&](const ShardMember& other) {
      return other.extension == member->extension;
    });
    if (!has_twin) continue;
    return invalid("{}: sample '{}' has two files '{}'", subject, printable(sample.key),
                   printable(member->extension));
  }
  return {};
}

// The rows of one shard as samples.
struct Rows {
  archive::ReadAt read;
  StreamOffsets offsets;
  const std::vector<StreamColumn>* columns = nullptr;
  StreamLayout layout = StreamLayout::rows;
  File* converted = nullptr;
};

Result<ShardScan> samples_of(Rows rows, const std::string& subject, const std::string& stem,
                             const Progress* progress) {
  constexpr std::uint64_t kPollEvery = 1024;  // samples between two checks for cancellation
  ShardScan scan;
  scan.end = rows.offsets.back();
  StreamRowConverter converter(*rows.columns, rows.read, rows.converted, subject);
  archive::StreamRows reader(rows.read, std::move(rows.offsets), *rows.columns, rows.layout, subject);
  scan.samples.reserve(reader.samples());
  for (std::uint64_t i = 0; i < reader.samples(); ++i) {
    if (progress && i % kPollEvery == 0 && progress->stop_requested())
      return cancelled("{}: interrupted while listing", subject);
    STOKER_ASSIGN_OR_RETURN(values, reader.values(i));
    STOKER_ASSIGN_OR_RETURN(sample,
                            converter.sample(*values, format("{}/{:08}", stem, i), scan.skipped_fields));
    if (sample.members.empty()) return invalid("{}: sample {} has no files", subject, i);
    STOKER_RETURN_IF_ERROR(check_extensions(sample, subject));
    scan.samples.push_back(std::move(sample));
  }
  STOKER_RETURN_IF_ERROR(converter.finish());
  return scan;
}

// The columns declared in the shard.
Result<std::vector<StreamColumn>> own_columns(const archive::ReadAt& read, const StreamOffsets& offsets,
                                              const std::string& subject) {
  STOKER_ASSIGN_OR_RETURN(config, archive::read_mds_config(read, offsets, subject));
  STOKER_ASSIGN_OR_RETURN(columns, archive::mds_columns(config, subject));
  STOKER_RETURN_IF_ERROR(archive::check_columns(columns, subject));
  return std::move(columns);
}

bool are_same(const std::vector<StreamColumn>& a, const std::vector<StreamColumn>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const StreamColumn& x, const StreamColumn& y) {
    return x.name == y.name && x.encoding == y.encoding;
  });
}

// Checks the first hash with a supported algorithm.
Status check_hash(const Path& path, const StreamShard& shard, const Progress& progress,
                  SkippedFields& skipped_fields) {
  std::string unknown;
  for (const auto& [algorithm, expected] : shard.hashes) {
    if (!FileHash::make(algorithm)) {
      unknown += format("{}{}", unknown.empty() ? "" : ", ", printable(algorithm));
      continue;
    }
    STOKER_ASSIGN_OR_RETURN(found, hash_file(path, algorithm, progress));
    if (found == expected) return {};
    return corrupt("{}: {} expected {}, found {}", printable(path.string()), algorithm, printable(expected),
                   found);
  }
  if (!unknown.empty())
    skipped_fields[format("hashes ({}), which are not supported", unknown)] += shard.samples;
  return {};
}

Status check_size(std::uint64_t found, std::uint64_t expected, const std::string& subject,
                  std::string_view what) {
  if (expected == 0 || found == expected) return {};
  return corrupt("{}: {} {} bytes, index.json declares {}", subject, what, found, expected);
}

// The file with the samples: the shard, or its unpacked data.
Result<File> raw_file(const Path& path, const StreamShard& shard, const Path& scratch, Progress& progress) {
  const std::string subject = printable(path.string());
  STOKER_ASSIGN_OR_RETURN(opened, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, opened.size());
  STOKER_RETURN_IF_ERROR(check_size(size, shard.file_bytes, subject, "has"));
  if (!shard.is_packed) return std::move(opened);
  STOKER_ASSIGN_OR_RETURN(packing, archive::detect_compression(opened));
  if (packing == archive::CompressionFormat::none)
    return corrupt("{}: is neither gzip nor zstd, although index.json declares compression", subject);
  STOKER_ASSIGN_OR_RETURN(file,
                          archive::decompress_file(std::move(opened), {scratch, std::nullopt}, progress));
  STOKER_ASSIGN_OR_RETURN(raw, file.size());
  STOKER_RETURN_IF_ERROR(check_size(raw, shard.raw_bytes, subject, "unpacks to"));
  return std::move(file);
}

bool has_packed_samples(const StreamShard& shard) {
  return shard.layout == StreamLayout::zstd_samples || shard.layout == StreamLayout::zstd_batches;
}

// Offsets of the samples in the file, and the columns of a table.
struct LocatedSamples {
  StreamOffsets offsets;
  std::optional<std::vector<StreamColumn>> columns;
  bool is_unpacked = false;
};

// LitData stores rows of plain values in a table after offsets without samples.
bool may_be_table(const StreamShard& shard, const StreamOffsets& offsets) {
  return !shard.has_config && shard.layout == StreamLayout::rows && offsets.size() > 1 &&
         offsets.front() == offsets.back();
}

// Unpacks samples that are compressed inside the shard; `file` becomes the unpacked file.
Result<LocatedSamples> samples_in(File& file, const StreamShard& shard, const Path& scratch,
                                  const Progress& progress, const std::string& subject) {
  constexpr std::uint64_t kReserveFraction = 20;  // keeps a twentieth free
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  const archive::StreamFile from{reader_of(file), size, subject};
  LocatedSamples found;
  if (!has_packed_samples(shard)) {
    STOKER_ASSIGN_OR_RETURN(offsets, archive::read_stream_offsets(from.read, size, subject));
    found.offsets = std::move(offsets);
    if (!may_be_table(shard, found.offsets)) return found;
  }
  STOKER_ASSIGN_OR_RETURN(free, free_space(scratch));
  STOKER_ASSIGN_OR_RETURN(out, archive::create_unnamed_file(scratch));
  const archive::StreamTarget to{out, free.value - free.value / kReserveFraction};
  if (has_packed_samples(shard)) {
    STOKER_ASSIGN_OR_RETURN(offsets, archive::unpack_stream(from, shard.layout, to, progress));
    found.offsets = std::move(offsets);
  } else {
    STOKER_ASSIGN_OR_RETURN(table,
                            archive::unpack_stream_table(from, found.offsets.size() - 1, to, progress));
    if (!table) return found;
    found.offsets = std::move(table->offsets);
    found.columns = std::move(table->columns);
  }
  found.is_unpacked = true;
  file = std::move(out);
  return found;
}

// The columns of the table, the shard or the index.
Result<std::vector<StreamColumn>> columns_of(const File& file, const StreamShard& shard,
                                             const LocatedSamples& found, const Path& folder,
                                             const std::string& subject) {
  if (found.columns) return *found.columns;
  if (!shard.has_config) {
    STOKER_RETURN_IF_ERROR(
        archive::check_columns(*shard.columns, printable((folder / archive::kStreamIndexFile).string())));
    return *shard.columns;
  }
  STOKER_ASSIGN_OR_RETURN(own, own_columns(reader_of(file), found.offsets, subject));
  if (shard.columns && !are_same(own, *shard.columns))
    return corrupt("{}: its columns differ from index.json", subject);
  return std::move(own);
}

}  // namespace

Result<ShardScan> scan_mds(const archive::ReadAt& read, std::uint64_t size, const std::string& subject,
                           const std::string& stem) {
  STOKER_ASSIGN_OR_RETURN(offsets, archive::read_stream_offsets(read, size, subject));
  STOKER_ASSIGN_OR_RETURN(columns, own_columns(read, offsets, subject));
  return samples_of({.read = read, .offsets = std::move(offsets), .columns = &columns}, subject,
                    stem_of(stem), nullptr);
}

Result<UnpackedShard> unpack_mds(const Path& path, const Path& scratch, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(opened, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(packing, archive::detect_compression(opened));
  StreamShard shard{.file = path.filename().string(), .has_config = true};
  shard.is_packed =
      packing != archive::CompressionFormat::none && !path.filename().string().ends_with(".mds");
  STOKER_ASSIGN_OR_RETURN(unpacked, unpack_stream(path.parent_path(), shard, scratch, progress));
  return std::move(unpacked);
}

Result<UnpackedShard> unpack_stream(const Path& folder, const StreamShard& shard, const Path& scratch,
                                    Progress& progress) {
  const Path path = folder / shard.file;
  const std::string subject = printable(path.string());
  SkippedFields skipped_fields;
  STOKER_RETURN_IF_ERROR(check_hash(path, shard, progress, skipped_fields));
  STOKER_ASSIGN_OR_RETURN(file, raw_file(path, shard, scratch, progress));
  STOKER_ASSIGN_OR_RETURN(found, samples_in(file, shard, scratch, progress, subject));
  const std::uint64_t samples = found.offsets.size() - 1;
  if (shard.columns && samples != shard.samples)
    return corrupt("{}: has {}, index.json declares {}", subject, counted(samples, "sample"), shard.samples);
  STOKER_ASSIGN_OR_RETURN(columns, columns_of(file, shard, found, folder, subject));
  STOKER_ASSIGN_OR_RETURN(converted, archive::create_unnamed_file(scratch));
  STOKER_ASSIGN_OR_RETURN(scan,
                          samples_of({.read = reader_of(file),
                                      .offsets = std::move(found.offsets),
                                      .columns = &columns,
                                      .layout = found.columns ? StreamLayout::unpacked_table : shard.layout,
                                      .converted = &converted},
                                     subject, stem_of(shard.file), &progress));
  UnpackedShard unpacked;
  STOKER_ASSIGN_OR_RETURN(converted_bytes, converted.size());
  STOKER_ASSIGN_OR_RETURN(bytes, file.size());
  scan.bytes = bytes;
  scan.skipped_fields.merge(skipped_fields);
  unpacked.scan = std::move(scan);
  if (shard.is_packed || found.is_unpacked) unpacked.file = std::move(file);
  if (converted_bytes > 0) unpacked.converted = std::move(converted);
  return unpacked;
}

}  // namespace stoker::sources
