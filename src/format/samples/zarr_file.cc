// Zarr in a zip archive of stored members. In version 3 the array of bytes is one shard of chunks that
// nothing packs, in order: readers of arrays fetch a chunk, and a sample's file is still one run of bytes.
// Version 2 knows no shards: there it is one chunk. Layout: docs/formats/sample-arrays.md.
#include <algorithm>

#include "base/hash.h"
#include "format/samples/array_file.h"
#include "format/samples/fields.h"
#include "format/samples/zip_writer.h"
#include "format/zarr/shard.h"
#include "format/zarr/writer.h"

namespace stoker::formats {

namespace {

constexpr std::uint64_t kChunk = 256u << 10;

// What says that a folder is a group.
struct GroupFile {
  std::string_view name;
  std::string_view text;
};

GroupFile group_file(int version) {
  if (version == 2) return {".zgroup", "{\n \"zarr_format\": 2\n}\n"};
  return {"zarr.json", "{\n \"attributes\": {},\n \"node_type\": \"group\",\n \"zarr_format\": 3\n}\n"};
}

class ZarrZipFile final : public ArrayFile {
 public:
  ZarrZipFile(ByteSink& sink, int version)
      : version_(version), zip_(sink, stoker::format("{}/{}", kSampleBytes, version == 2 ? "0" : "c/0")) {}

  std::uint64_t bytes_begin() const override { return zip_.first_begin(); }
  Status begin() override { return zip_.begin_first(); }

  Status append(std::span<const std::byte> piece, std::uint32_t crc32c) override {
    bytes_ += piece.size();
    return zip_.append(piece, crc32c);
  }

  Status end_bytes() override {
    Result<ZarrMetadata> metadata = version_ == 2 ? end_chunk() : end_shard();
    if (!metadata.ok()) return metadata.status();
    const GroupFile group = group_file(version_);
    RETURN_IF_ERROR(add_text(std::string(group.name), group.text));
    RETURN_IF_ERROR(add_text(stoker::format("{}/{}", kSampleFiles, group.name), group.text));
    return add_metadata(kSampleBytes, *metadata);
  }

  Status add(const NumberArray& array) override {
    Extents chunk = array.shape;
    for (std::uint64_t& size : chunk) size = std::max<std::uint64_t>(1, size);
    OK_OR_RETURN(metadata, metadata_of(array.shape, chunk, {}, array.is_signed ? DType::i64 : DType::u64));
    RETURN_IF_ERROR(add_metadata(array.path, metadata));
    if (array.numbers.empty()) return {};
    const std::vector<std::uint64_t> first(array.shape.size());
    return zip_.add(stoker::format("{}/{}", array.path, chunk_key(metadata, first)), array.numbers);
  }

  Status finish() override { return zip_.finish(); }

 private:
  // Of an array that nothing packs.
  Result<ZarrMetadata> metadata_of(const Extents& shape, const Extents& chunks, const Extents& shards,
                                   DType type) const {
    ZarrSpec spec;
    spec.version = version_;
    spec.shape = shape;
    spec.chunks = chunks;
    spec.shards = shards;
    spec.type = element_type(type);
    spec.codecs.clear();
    return zarr_metadata(spec);
  }

  Result<ZarrMetadata> end_shard() {
    const std::uint64_t chunk = std::clamp<std::uint64_t>(bytes_, 1, kChunk);
    const std::uint64_t chunks = std::max<std::uint64_t>(1, (bytes_ + chunk - 1) / chunk);
    RETURN_IF_ERROR(zip_.append(std::string(chunk * chunks - bytes_, '\0')));
    RETURN_IF_ERROR(zip_.append(index_of(chunk, chunks)));
    return metadata_of({bytes_}, {chunk}, {chunk * chunks}, DType::u8);
  }

  Result<ZarrMetadata> end_chunk() {
    const std::uint64_t chunk = std::max<std::uint64_t>(1, bytes_);
    RETURN_IF_ERROR(zip_.append(std::string(chunk - bytes_, '\0')));
    return metadata_of({bytes_}, {chunk}, {}, DType::u8);
  }

  Status add_metadata(std::string_view path, const ZarrMetadata& metadata) {
    return add_text(stoker::format("{}/{}", path, version_ == 2 ? ".zarray" : "zarr.json"),
                    to_json(metadata));
  }

  // Where each chunk lies in the shard: one after another.
  static std::string index_of(std::uint64_t chunk, std::uint64_t chunks) {
    Fields index;
    for (std::uint64_t i = 0; i < chunks; ++i) index.number(i * chunk, 8).number(chunk, 8);
    return index.number(crc32c(index.so_far()), 4).take();
  }
  Status add_text(std::string name, std::string_view text) {
    return zip_.add(std::move(name), std::as_bytes(std::span(text)));
  }

  const int version_;
  StoredZipWriter zip_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<ArrayFile> make_zarr_file(ByteSink& sink, int version) {
  return std::make_unique<ZarrZipFile>(sink, version);
}

}  // namespace stoker::formats
