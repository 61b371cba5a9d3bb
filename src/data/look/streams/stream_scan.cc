#include "data/look/streams/stream_scan.h"

#include <algorithm>

#include "base/hashes/file_hash.h"
#include "data/look/streams/row_maker.h"
#include "format/expanded_file.h"
#include "format/streams/stream_rows.h"

namespace stoker::data {

namespace {

using formats::StreamColumn;
using formats::StreamLayout;
using formats::StreamOffsets;
using formats::StreamShard;

formats::ReadAt reader_of(const File& file) {
  return [&file](std::uint64_t offset, std::span<std::byte> out) { return file.read_at(offset, out); };
}

// "shard.00000" of "shard.00000.mds.zstd", "chunk-0-0" of "chunk-0-0.zstd.bin".
std::string stem_of(std::string_view file) {
  for (const std::string_view ending : {".mds", ".zstd", ".bin"}) file = file.substr(0, file.rfind(ending));
  return printable(file);
}

// A sample of the shard must not have two files of one name.
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
  formats::ReadAt read;
  StreamOffsets offsets;
  const std::vector<StreamColumn>* columns = nullptr;
  StreamLayout layout = StreamLayout::rows;
  File* made = nullptr;
};

Result<ShardScan> samples_of(Rows rows, const std::string& subject, const std::string& stem,
                             const Progress* progress) {
  constexpr std::uint64_t kAsk = 1024;  // samples between two looks whether to stop
  ShardScan scan;
  scan.end = rows.offsets.back();
  RowMaker maker(*rows.columns, rows.read, rows.made, subject);
  formats::StreamRows reader(rows.read, std::move(rows.offsets), *rows.columns, rows.layout, subject);
  scan.samples.reserve(reader.samples());
  for (std::uint64_t i = 0; i < reader.samples(); ++i) {
    if (progress && i % kAsk == 0 && progress->stop_requested())
      return cancelled("{}: interrupted while it was listed", subject);
    OK_OR_RETURN(values, reader.values(i));
    OK_OR_RETURN(sample, maker.sample(*values, format("{}/{:08}", stem, i), scan.not_taken));
    if (sample.members.empty()) return invalid("{}: sample {} has no files", subject, i);
    RETURN_IF_ERROR(check_extensions(sample, subject));
    scan.samples.push_back(std::move(sample));
  }
  RETURN_IF_ERROR(maker.finish());
  return scan;
}

// The columns as the shard itself says.
Result<std::vector<StreamColumn>> own_columns(const formats::ReadAt& read, const StreamOffsets& offsets,
                                              const std::string& subject) {
  OK_OR_RETURN(config, formats::read_mds_config(read, offsets, subject));
  OK_OR_RETURN(columns, formats::mds_columns(config, subject));
  RETURN_IF_ERROR(formats::check_columns(columns, subject));
  return std::move(columns);
}

bool are_same(const std::vector<StreamColumn>& a, const std::vector<StreamColumn>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const StreamColumn& x, const StreamColumn& y) {
    return x.name == y.name && x.encoding == y.encoding;
  });
}

// With the first of its hashes that is known here.
Status check_hash(const Path& path, const StreamShard& shard, const Progress& progress, NotTaken& not_taken) {
  std::string unknown;
  for (const auto& [algorithm, expected] : shard.hashes) {
    if (!FileHash::make(algorithm)) {
      unknown += format("{}{}", unknown.empty() ? "" : ", ", printable(algorithm));
      continue;
    }
    OK_OR_RETURN(found, hash_file(path, algorithm, progress));
    if (found == expected) return {};
    return corrupt("{}: {} expected {}, found {}", printable(path.string()), algorithm, printable(expected),
                   found);
  }
  if (!unknown.empty()) not_taken[format("hashes ({}): not compared", unknown)] += shard.samples;
  return {};
}

Status check_size(std::uint64_t found, std::uint64_t expected, const std::string& subject,
                  std::string_view what) {
  if (expected == 0 || found == expected) return {};
  return corrupt("{}: {} {} bytes, index.json says {}", subject, what, found, expected);
}

// The file in which samples can be read: the shard, or what it unpacks to.
Result<File> raw_file(const Path& path, const StreamShard& shard, const Path& scratch, Progress& progress) {
  const std::string subject = printable(path.string());
  OK_OR_RETURN(opened, File::open_read(path));
  OK_OR_RETURN(size, opened.size());
  RETURN_IF_ERROR(check_size(size, shard.file_bytes, subject, "has"));
  if (!shard.is_packed) return std::move(opened);
  OK_OR_RETURN(packing, formats::packing_of(opened));
  if (packing == formats::Packing::none)
    return corrupt("{}: is neither gzip nor zstd, as index.json says", subject);
  OK_OR_RETURN(file, formats::expanded(std::move(opened), {scratch, std::nullopt}, progress));
  OK_OR_RETURN(raw, file.size());
  RETURN_IF_ERROR(check_size(raw, shard.raw_bytes, subject, "unpacks to"));
  return std::move(file);
}

bool has_packed_samples(const StreamShard& shard) {
  return shard.layout == StreamLayout::zstd_samples || shard.layout == StreamLayout::zstd_batches;
}

// Where samples lie in the file, and of a table its columns.
struct Found {
  StreamOffsets offsets;
  std::optional<std::vector<StreamColumn>> columns;
  bool is_unpacked = false;
};

// LitData's rows of plain values lie in a table behind offsets without samples.
bool may_be_table(const StreamShard& shard, const StreamOffsets& offsets) {
  return !shard.has_config && shard.layout == StreamLayout::rows && offsets.size() > 1 &&
         offsets.front() == offsets.back();
}

// Unpacks samples that are packed inside the shard: `file` becomes what they unpack to.
Result<Found> samples_in(File& file, const StreamShard& shard, const Path& scratch, const Progress& progress,
                         const std::string& subject) {
  constexpr std::uint64_t kOfFree = 20;  // a twentieth stays
  OK_OR_RETURN(size, file.size());
  const formats::StreamFile from{reader_of(file), size, subject};
  Found found;
  if (!has_packed_samples(shard)) {
    OK_OR_RETURN(offsets, formats::read_stream_offsets(from.read, size, subject));
    found.offsets = std::move(offsets);
    if (!may_be_table(shard, found.offsets)) return found;
  }
  OK_OR_RETURN(free, free_space(scratch));
  OK_OR_RETURN(out, formats::nameless_file(scratch));
  const formats::StreamTarget to{out, free.value - free.value / kOfFree};
  if (has_packed_samples(shard)) {
    OK_OR_RETURN(offsets, formats::unpack_stream(from, shard.layout, to, progress));
    found.offsets = std::move(offsets);
  } else {
    OK_OR_RETURN(table, formats::unpack_stream_table(from, found.offsets.size() - 1, to, progress));
    if (!table) return found;
    found.offsets = std::move(table->offsets);
    found.columns = std::move(table->columns);
  }
  found.is_unpacked = true;
  file = std::move(out);
  return found;
}

// Those of the table, of the shard itself, or of the index.
Result<std::vector<StreamColumn>> columns_of(const File& file, const StreamShard& shard, const Found& found,
                                             const Path& folder, const std::string& subject) {
  if (found.columns) return *found.columns;
  if (!shard.has_config) {
    RETURN_IF_ERROR(
        formats::check_columns(*shard.columns, printable((folder / formats::kStreamIndexFile).string())));
    return *shard.columns;
  }
  OK_OR_RETURN(own, own_columns(reader_of(file), found.offsets, subject));
  if (shard.columns && !are_same(own, *shard.columns))
    return corrupt("{}: its columns are not those that index.json says", subject);
  return std::move(own);
}

}  // namespace

Result<ShardScan> scan_mds(const formats::ReadAt& read, std::uint64_t size, const std::string& subject,
                           const std::string& stem) {
  OK_OR_RETURN(offsets, formats::read_stream_offsets(read, size, subject));
  OK_OR_RETURN(columns, own_columns(read, offsets, subject));
  return samples_of({.read = read, .offsets = std::move(offsets), .columns = &columns}, subject,
                    stem_of(stem), nullptr);
}

Result<UnpackedShard> unpack_mds(const Path& path, const Path& scratch, Progress& progress) {
  OK_OR_RETURN(opened, File::open_read(path));
  OK_OR_RETURN(packing, formats::packing_of(opened));
  StreamShard shard{.file = path.filename().string(), .has_config = true};
  shard.is_packed = packing != formats::Packing::none && !path.filename().string().ends_with(".mds");
  OK_OR_RETURN(unpacked, unpack_stream(path.parent_path(), shard, scratch, progress));
  return std::move(unpacked);
}

Result<UnpackedShard> unpack_stream(const Path& folder, const StreamShard& shard, const Path& scratch,
                                    Progress& progress) {
  const Path path = folder / shard.file;
  const std::string subject = printable(path.string());
  NotTaken not_taken;
  RETURN_IF_ERROR(check_hash(path, shard, progress, not_taken));
  OK_OR_RETURN(file, raw_file(path, shard, scratch, progress));
  OK_OR_RETURN(found, samples_in(file, shard, scratch, progress, subject));
  const std::uint64_t samples = found.offsets.size() - 1;
  if (shard.columns && samples != shard.samples)
    return corrupt("{}: has {} samples, index.json says {}", subject, samples, shard.samples);
  OK_OR_RETURN(columns, columns_of(file, shard, found, folder, subject));
  OK_OR_RETURN(made, formats::nameless_file(scratch));
  OK_OR_RETURN(scan, samples_of({.read = reader_of(file),
                                 .offsets = std::move(found.offsets),
                                 .columns = &columns,
                                 .layout = found.columns ? StreamLayout::unpacked_table : shard.layout,
                                 .made = &made},
                                subject, stem_of(shard.file), &progress));
  UnpackedShard unpacked;
  OK_OR_RETURN(made_bytes, made.size());
  OK_OR_RETURN(bytes, file.size());
  scan.bytes = bytes;
  scan.not_taken.merge(not_taken);
  unpacked.scan = std::move(scan);
  if (shard.is_packed || found.is_unpacked) unpacked.file = std::move(file);
  if (made_bytes > 0) unpacked.made = std::move(made);
  return unpacked;
}

}  // namespace stoker::data
