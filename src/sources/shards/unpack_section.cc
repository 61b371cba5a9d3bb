#include "sources/shards/unpack_section.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "archive/decompress_file.h"
#include "codec/chunks/chunk_reader.h"

namespace stoker::sources {

namespace {

// A file of a sample, and its number in the section.
struct SectionFile {
  dataset::Component place;
  std::size_t number = 0;
  codec::ChunkMap::ReadKey turn = {};  // when its chunk is read

  bool has_bytes_of(const SectionFile& other) const {
    return place.offset == other.place.offset && place.length == other.place.length;
  }
};

// In an order that decompresses each chunk once. Files with the same bytes are adjacent.
std::vector<SectionFile> files_in_read_order(const dataset::IndexSection& section) {
  const codec::ChunkMap& chunks = *section.chunks();
  const bool is_shared = chunks.shares_chunks();
  std::vector<SectionFile> files;
  for (std::uint64_t sample = 0; sample < section.samples(); ++sample) {
    for (std::uint32_t i = 0; i < section.component_count(sample); ++i) {
      SectionFile& file = files.emplace_back();
      file.place = section.component(sample, i);
      file.number = files.size() - 1;
      const bool has_key = is_shared && file.place.length > 0;
      file.turn =
          has_key ? chunks.read_key(file.place.offset) : codec::ChunkMap::ReadKey{.at = file.place.offset};
    }
  }
  std::ranges::stable_sort(files, {}, &SectionFile::turn);
  return files;
}

Status check_free_space(const std::vector<SectionFile>& files, const Path& folder,
                        const std::string& subject) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < files.size(); ++i)
    if (i == 0 || !files[i].has_bytes_of(files[i - 1])) bytes += files[i].place.length;
  STOKER_ASSIGN_OR_RETURN(free, free_space(folder));
  if (bytes <= free.value) return {};
  return no_space("{}: unpacks to {}, but only {} are free", subject, rounded({bytes}), rounded(free));
}

// Appends the bytes of files to an unnamed file, in pieces.
class SectionCopy {
 public:
  SectionCopy(const codec::ShardFile& shard, const codec::ChunkReader& reader, File& out)
      : shard_(shard), reader_(reader), out_(out) {}

  std::uint64_t size() const { return size_; }

  Status append(const dataset::Component& place) {
    constexpr std::uint64_t kMostAtOnce = 64u << 20;
    for (std::uint64_t at = 0; at < place.length; at += kMostAtOnce) {
      const std::size_t begin = piece_.size();
      piece_.resize(begin + std::min(kMostAtOnce, place.length - at));
      STOKER_RETURN_IF_ERROR(reader_.read(shard_, place.offset + at, std::span(piece_).subspan(begin)));
      if (piece_.size() >= kPiece) STOKER_RETURN_IF_ERROR(flush());
    }
    size_ += place.length;
    return {};
  }

  Status flush() {
    STOKER_RETURN_IF_ERROR(out_.write(piece_));
    piece_.clear();
    return {};
  }

 private:
  static constexpr std::size_t kPiece = 4u << 20;

  const codec::ShardFile& shard_;
  const codec::ChunkReader& reader_;
  File& out_;
  std::vector<std::byte> piece_;
  std::uint64_t size_ = 0;
};

// Copies all files to `out`. Returns their offsets there.
Result<std::vector<std::uint64_t>> copy_files(const std::vector<SectionFile>& files, SectionCopy copy,
                                              const std::string& subject, const Progress& progress) {
  std::vector<std::uint64_t> offsets(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while unpacking", subject);
    if (i > 0 && files[i].has_bytes_of(files[i - 1])) {
      offsets[files[i].number] = offsets[files[i - 1].number];
      continue;
    }
    offsets[files[i].number] = copy.size();
    STOKER_RETURN_IF_ERROR(copy.append(files[i].place));
  }
  STOKER_RETURN_IF_ERROR(copy.flush());
  return offsets;
}

}  // namespace

Result<UnpackedSection> unpack_section(const Path& path, const dataset::IndexSection& section,
                                       const ScratchTarget& scratch, const Progress& progress) {
  constexpr std::uint64_t kLeastCache = 64u << 20;  // per thread
  const codec::ChunkMap& chunks = *section.chunks();
  const std::string subject = printable(path.string());
  STOKER_ASSIGN_OR_RETURN(shard, codec::ShardFile::open(path, chunks.parts()));
  STOKER_ASSIGN_OR_RETURN(size, shard.size());
  if (size != section.shard_bytes())
    return corrupt("{}: has {} bytes, the manifest lists {}", subject, size, section.shard_bytes());
  const std::vector<SectionFile> files = files_in_read_order(section);
  STOKER_RETURN_IF_ERROR(check_free_space(files, scratch.folder, subject));
  const ByteCount kept{std::max(kLeastCache, chunks.cache_bytes_in_read_order())};
  const codec::ChunkReader reader(chunks, std::make_shared<codec::ChunkCache>(kept), subject,
                                  codec::ChunkReader::CacheContent::records);
  STOKER_ASSIGN_OR_RETURN(out, archive::create_unnamed_file(scratch.folder));
  STOKER_ASSIGN_OR_RETURN(offsets, copy_files(files, SectionCopy(shard, reader, out), subject, progress));
  STOKER_ASSIGN_OR_RETURN(kept_file, scratch.files.keep(std::move(out)));
  for (std::uint64_t& offset : offsets) offset += kept_file.begin;
  return UnpackedSection{std::move(kept_file), std::move(offsets)};
}

}  // namespace stoker::sources
