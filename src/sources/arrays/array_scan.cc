#include "sources/arrays/array_scan.h"

#include <algorithm>

#include "archive/decompress_file.h"
#include "archive/tar.h"
#include "arrays/numpy/npy_store.h"
#include "arrays/samples/reader.h"
#include "sources/arrays/row_scan.h"
#include "sources/source.h"

namespace stoker::sources {

namespace {

using arrays::SampleArrays;

constexpr std::uint64_t kKeyLimit = 4096;

Result<SampleArrays> open_arrays(const Path& file) {
  const bool is_hdf5 = kind_of_shard(file.filename().string()) == dataset::ContainerKind::hdf5;
  return SampleArrays::open(file, is_hdf5 ? arrays::ArrayFormat::hdf5 : arrays::ArrayFormat::zarr);
}

// The files of a sample by offset, which is the order of packing.
std::vector<ShardMember> members_of(const SampleArrays& arrays, std::uint64_t sample, std::uint64_t run) {
  std::vector<ShardMember> members;
  for (const SampleArrays::Kind& kind : arrays.files()) {
    const SampleArrays::ByteSpan& place = kind.places[sample];
    if (!place.is_present()) continue;
    members.push_back({.name = {},
                       .extension = kind.name,
                       .header_offset = run + place.begin,
                       .data_offset = run + place.begin,
                       .bytes = place.end - place.begin});
  }
  std::sort(members.begin(), members.end(), [](const ShardMember& a, const ShardMember& b) {
    if (a.data_offset != b.data_offset) return a.data_offset < b.data_offset;
    if (a.bytes != b.bytes) return a.bytes < b.bytes;
    if (is_main_image(a.extension) != is_main_image(b.extension)) return is_main_image(a.extension);
    return a.extension < b.extension;
  });
  return members;
}

// `read` reads from the array `bytes`, which begins at `run`.
Result<ShardScan> samples_of(const SampleArrays& arrays, std::uint64_t run, const archive::ReadAt& read,
                             const std::string& subject, const std::string& stem) {
  ShardScan scan;
  for (const std::string& name : arrays.ignored_arrays())
    scan.skipped_fields[format("array '{}'", name)] = arrays.samples();
  scan.samples.reserve(arrays.samples());
  for (std::uint64_t i = 0; i < arrays.samples(); ++i) {
    ShardSample& sample = scan.samples.emplace_back();
    sample.members = members_of(arrays, i, run);
    if (sample.members.empty()) return invalid("{}: sample {} has no files", subject, i);
    if (!arrays.labels().empty() && arrays.labels()[i] >= 0) sample.label = arrays.labels()[i];
    if (arrays.keys().empty()) {
      sample.key = format("{}/{:08}", stem, i);
    } else {
      const SampleArrays::ByteSpan& place = arrays.keys()[i];
      if (!place.is_present()) return corrupt("{}: sample {} has no key", subject, i);
      if (place.end - place.begin > kKeyLimit)
        return corrupt("{}: sample {} has a key of {} bytes (at most {})", subject, i,
                       place.end - place.begin, kKeyLimit);
      sample.key.resize(place.end - place.begin);
      STOKER_RETURN_IF_ERROR(read(place.begin, std::as_writable_bytes(std::span(sample.key))));
    }
    for (ShardMember& member : sample.members) member.name = format("{}.{}", sample.key, member.extension);
  }
  return scan;
}

Status no_random_access(const Path& file, const Status& why) {
  return invalid("{}: its samples cannot be read individually", why.message())
      .cure("stoker data convert {} OUT --format {}", shell_quote(file.parent_path().string()),
            to_text(kind_of_shard(file.filename().string())));
}

// Adds the chunk map to the samples.
Result<ShardScan> with_chunks(ShardScan scan, RowChunks chunks, const Path& path) {
  STOKER_ASSIGN_OR_RETURN(shard, codec::ShardFile::open(path, chunks.parts));
  STOKER_ASSIGN_OR_RETURN(size, shard.size());
  STOKER_ASSIGN_OR_RETURN(map, codec::ChunkMap::create(std::move(chunks.arrays), size,
                                                       printable(path.string()), std::move(chunks.parts)));
  scan.chunks = std::make_shared<const codec::ChunkMap>(std::move(map));
  scan.bytes = size;
  scan.end = size;
  return scan;
}

}  // namespace

Result<ShardScan> scan_arrays(const Path& path, const std::string& stem) {
  const std::string subject = printable(path.string());
  if (folder_exists(path)) return no_random_access(path, invalid("{}: is a folder of many files", subject));
  STOKER_ASSIGN_OR_RETURN(arrays, open_arrays(path));
  const Result<std::uint64_t> run = arrays.contiguous_offset();
  if (!run.ok() && run.status().code() == Code::invalid) return no_random_access(path, run.status());
  if (!run.ok()) return run.status();
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  if (*run > size || arrays.bytes() > size - *run)
    return corrupt("{}: array 'bytes' is beyond the end of the file", subject);
  const archive::ReadAt read = [&file = file, &run](std::uint64_t offset, std::span<std::byte> out) {
    return file.read_at(*run + offset, out);
  };
  STOKER_ASSIGN_OR_RETURN(scan, samples_of(arrays, *run, read, subject, stem));
  scan.bytes = size;
  scan.end = size;
  return scan;
}

Result<ShardScan> scan_chunks(const Path& path, const std::string& stem) {
  const std::string subject = printable(path.string());
  Result<SampleArrays> opened = open_arrays(path);
  if (!opened.ok() && opened.status().code() != Code::not_found) return opened.status();
  Result<ShardScan> scan = ShardScan();
  RowChunks chunks;
  if (!opened.ok()) {
    STOKER_ASSIGN_OR_RETURN(arrays, open_rows(path));
    scan = scan_rows({arrays, path, stem}, chunks);
  } else {
    Result<codec::ChunkedArray> bytes = opened->chunked();
    if (!bytes.ok())
      return bytes.status().code() == Code::invalid ? no_random_access(path, bytes.status()) : bytes.status();
    chunks.arrays.push_back(std::move(*bytes));
    STOKER_ASSIGN_OR_RETURN(parts, opened->parts());
    chunks.parts = std::move(parts);
    const archive::ReadAt read = [&](std::uint64_t offset, std::span<std::byte> out) {
      return opened->read(offset, out);
    };
    scan = samples_of(*opened, 0, read, subject, stem);
  }
  if (!scan.ok()) return scan.status();
  return with_chunks(std::move(*scan), std::move(chunks), path);
}

Result<UnpackedShard> unpack_arrays(const Path& path, const std::string& stem, const Path& scratch,
                                    Progress& progress) {
  constexpr std::uint64_t kPiece = 8u << 20;
  const std::string subject = printable(path.string());
  Result<SampleArrays> opened = open_arrays(path);
  if (!opened.ok() && opened.status().code() == Code::not_found) {
    STOKER_ASSIGN_OR_RETURN(rows, open_rows(path));
    return unpack_rows({rows, path, stem}, scratch, progress);
  }
  if (!opened.ok()) return opened.status();
  const SampleArrays& arrays = *opened;
  STOKER_ASSIGN_OR_RETURN(free, free_space(scratch));
  if (arrays.bytes() > free.value) {
    return no_space("{}: unpacks to {}, but only {} are free", subject, rounded({arrays.bytes()}),
                    rounded(free));
  }
  STOKER_ASSIGN_OR_RETURN(out, archive::create_unnamed_file(scratch));
  std::vector<std::byte> piece(std::min(kPiece, arrays.bytes()));
  for (std::uint64_t at = 0; at < arrays.bytes(); at += kPiece) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while unpacking", subject);
    const auto part = std::span(piece).first(std::min(kPiece, arrays.bytes() - at));
    STOKER_RETURN_IF_ERROR(arrays.read(at, part));
    STOKER_RETURN_IF_ERROR(out.write(part));
  }
  const archive::ReadAt read = [&out = out](std::uint64_t offset, std::span<std::byte> into) {
    return out.read_at(offset, into);
  };
  STOKER_ASSIGN_OR_RETURN(scan, samples_of(arrays, 0, read, subject, stem));
  scan.bytes = arrays.bytes();
  scan.end = arrays.bytes();
  return UnpackedShard{std::move(scan), std::move(out)};
}

Result<ShardScan> scan_npy(const Path& folder, const arrays::NpySet& set) {
  const Path path = folder / set.file;
  STOKER_ASSIGN_OR_RETURN(store, arrays::open_npy_store(folder, set));
  STOKER_ASSIGN_OR_RETURN(arrays, arrays::RowArrays::open(std::move(store), printable(path.string())));
  RowChunks chunks;
  STOKER_ASSIGN_OR_RETURN(scan, scan_rows({arrays, path, set.stem}, chunks));
  return with_chunks(std::move(scan), std::move(chunks), path);
}

Result<UnpackedShard> unpack_npy(const Path& folder, const arrays::NpySet& set, const Path& scratch,
                                 Progress& progress) {
  const Path path = folder / set.file;
  STOKER_ASSIGN_OR_RETURN(store, arrays::unpack_npy_store(folder, set, scratch, progress));
  STOKER_ASSIGN_OR_RETURN(arrays, arrays::RowArrays::open(std::move(store), printable(path.string())));
  return unpack_rows({arrays, path, set.stem}, scratch, progress);
}

}  // namespace stoker::sources
