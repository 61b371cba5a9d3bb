// Writes HDF5 (specification 3.0), as needed for a few plain arrays: superblock version 2, object headers
// version 2, contiguous data. The headers follow the arrays. The superblock at the start is written last.
// Layout: docs/formats/hdf5.md.
#include "arrays/samples/array_file.h"

#include <algorithm>
#include <map>

#include "arrays/samples/hdf5_blocks.h"
#include "arrays/samples/little_endian_writer.h"
#include "arrays/samples/zip_writer.h"
#include "arrays/zarr/shard.h"
#include "arrays/zarr/writer.h"
#include "base/hash.h"

namespace stoker::arrays {

namespace {

class Hdf5File final : public ArrayFile {
 public:
  explicit Hdf5File(archive::ByteSink& sink) : sink_(sink) {}

  std::uint64_t bytes_begin() const override { return kHdf5FirstByte; }

  Status begin() override { return put(std::string(kHdf5FirstByte, '\0')); }

  Status append(std::span<const std::byte> piece, std::uint32_t crc32c) override {
    at_ += piece.size();
    return sink_.write_with_crc(piece, crc32c);
  }

  Status end_bytes() override {
    headers_[std::string(kSampleBytes)] = {{at_ - kHdf5FirstByte}, {}, kHdf5FirstByte};
    return {};
  }

  Status add(const NumberArray& array) override {
    STOKER_RETURN_IF_ERROR(align());
    headers_[array.path] = {array.shape, {.bytes = 8, .is_signed = array.is_signed}, at_};
    at_ += array.numbers.size();
    return sink_.write(array.numbers);
  }

  Status finish() override {
    std::map<std::string, std::uint64_t> root;
    std::map<std::string, std::uint64_t> files;
    for (const auto& [path, dataset] : headers_) {
      STOKER_ASSIGN_OR_RETURN(address,
                              put_header(hdf5_dataset(dataset.shape, dataset.element, dataset.address)));
      const std::size_t slash = path.find('/');
      (slash == std::string::npos ? root : files)[path.substr(slash + 1)] = address;
    }
    STOKER_ASSIGN_OR_RETURN(group, put_header(hdf5_group(files)));
    root[std::string(kSampleFiles)] = group;
    STOKER_ASSIGN_OR_RETURN(address, put_header(hdf5_group(root)));
    const std::string head = hdf5_superblock(at_, address);
    return sink_.overwrite_head(std::as_bytes(std::span(head)));
  }

 private:
  struct Dataset {
    std::vector<std::uint64_t> shape;
    Hdf5Element element;
    std::uint64_t address = 0;
  };

  Status put(const std::string& bytes) {
    at_ += bytes.size();
    return sink_.write(std::as_bytes(std::span(bytes)));
  }
  Status align() { return put(std::string((8 - at_ % 8) % 8, '\0')); }
  Result<std::uint64_t> put_header(const std::string& header) {
    STOKER_RETURN_IF_ERROR(align());
    const std::uint64_t address = at_;
    STOKER_RETURN_IF_ERROR(put(header));
    return address;
  }

  archive::ByteSink& sink_;
  std::uint64_t at_ = 0;
  std::map<std::string, Dataset> headers_;
};

// Writes Zarr in a zip archive of uncompressed members. In version 3, the array of bytes is one shard of
// uncompressed chunks in order. Array readers then fetch single chunks, and the file of a sample is still
// contiguous. Version 2 has no shards: there the array is one chunk. Layout: docs/formats/sample-arrays.md.

constexpr std::uint64_t kChunk = 256u << 10;

// The metadata of a group.
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
  ZarrZipFile(archive::ByteSink& sink, int version)
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
    STOKER_RETURN_IF_ERROR(add_text(std::string(group.name), group.text));
    STOKER_RETURN_IF_ERROR(add_text(stoker::format("{}/{}", kSampleFiles, group.name), group.text));
    return add_metadata(kSampleBytes, *metadata);
  }

  Status add(const NumberArray& array) override {
    codec::Extents chunk = array.shape;
    for (std::uint64_t& size : chunk) size = std::max<std::uint64_t>(1, size);
    STOKER_ASSIGN_OR_RETURN(metadata,
                            metadata_of(array.shape, chunk, {}, array.is_signed ? DType::i64 : DType::u64));
    STOKER_RETURN_IF_ERROR(add_metadata(array.path, metadata));
    if (array.numbers.empty()) return {};
    const std::vector<std::uint64_t> first(array.shape.size());
    return zip_.add(stoker::format("{}/{}", array.path, chunk_key(metadata, first)), array.numbers);
  }

  Status finish() override { return zip_.finish(); }

 private:
  // The metadata of an uncompressed array.
  Result<ZarrMetadata> metadata_of(const codec::Extents& shape, const codec::Extents& chunks,
                                   const codec::Extents& shards, DType type) const {
    ZarrSpec spec;
    spec.version = version_;
    spec.shape = shape;
    spec.chunks = chunks;
    spec.shards = shards;
    spec.type = codec::element_type(type);
    spec.codecs.clear();
    return zarr_metadata(spec);
  }

  Result<ZarrMetadata> end_shard() {
    const std::uint64_t chunk = std::clamp<std::uint64_t>(bytes_, 1, kChunk);
    const std::uint64_t chunks = std::max<std::uint64_t>(1, (bytes_ + chunk - 1) / chunk);
    STOKER_RETURN_IF_ERROR(zip_.append(std::string(chunk * chunks - bytes_, '\0')));
    STOKER_RETURN_IF_ERROR(zip_.append(index_of(chunk, chunks)));
    return metadata_of({bytes_}, {chunk}, {chunk * chunks}, DType::u8);
  }

  Result<ZarrMetadata> end_chunk() {
    const std::uint64_t chunk = std::max<std::uint64_t>(1, bytes_);
    STOKER_RETURN_IF_ERROR(zip_.append(std::string(chunk - bytes_, '\0')));
    return metadata_of({bytes_}, {chunk}, {}, DType::u8);
  }

  Status add_metadata(std::string_view path, const ZarrMetadata& metadata) {
    return add_text(stoker::format("{}/{}", path, version_ == 2 ? ".zarray" : "zarr.json"),
                    to_json(metadata));
  }

  // The index of a shard of contiguous chunks.
  static std::string index_of(std::uint64_t chunk, std::uint64_t chunks) {
    LittleEndianWriter index;
    for (std::uint64_t i = 0; i < chunks; ++i) index.number(i * chunk, 8).number(chunk, 8);
    return index.number(crc32c(index.str()), 4).take();
  }
  Status add_text(std::string name, std::string_view text) {
    return zip_.add(std::move(name), std::as_bytes(std::span(text)));
  }

  const int version_;
  StoredZipWriter zip_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<ArrayFile> make_hdf5_file(archive::ByteSink& sink) {
  return std::make_unique<Hdf5File>(sink);
}

std::unique_ptr<ArrayFile> make_zarr_file(archive::ByteSink& sink, int version) {
  return std::make_unique<ZarrZipFile>(sink, version);
}

std::unique_ptr<ArrayFile> ArrayFile::make(ArrayFormat format, archive::ByteSink& sink) {
  if (format == ArrayFormat::hdf5) return make_hdf5_file(sink);
  return make_zarr_file(sink, format == ArrayFormat::zarr_2 ? 2 : 3);
}

}  // namespace stoker::arrays
