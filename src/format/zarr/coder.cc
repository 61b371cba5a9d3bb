#include "format/zarr/coder.h"

#include "format/zarr/codec.h"

namespace stoker::formats {

namespace {

// Its text is that of an array with the same chunks and no shards.
class ZarrCoder final : public ChunkCoder {
 public:
  explicit ZarrCoder(ZarrMetadata metadata) : metadata_(std::move(metadata)) {}

  Kind kind() const override { return Kind::zarr; }
  std::string to_text() const override { return to_json(metadata_); }
  Result<Buffer> decode(const StoredChunk& /*place*/, std::uint64_t /*bytes*/,
                        std::span<const std::byte> stored, std::string_view subject) const override {
    return decode_chunk(metadata_.pipeline, ChunkShape{metadata_.chunks, metadata_.type}, stored, subject);
  }

 private:
  ZarrMetadata metadata_;
};

}  // namespace

std::shared_ptr<const ChunkCoder> zarr_chunk_coder(const ZarrMetadata& metadata) {
  ZarrMetadata plain = metadata;
  if (plain.sharding) {
    plain.chunks = plain.sharding->chunks;
    plain.pipeline = plain.sharding->inner;
    plain.sharding.reset();
  }
  plain.attributes = "{}";
  plain.dimension_names.clear();
  return std::make_shared<const ZarrCoder>(std::move(plain));
}

Result<std::shared_ptr<const ChunkCoder>> parse_zarr_coder(const std::string& text, const ChunkedArray& about,
                                                           std::string_view subject) {
  // Version 2 has no node_type.
  const bool is_third = text.find("\"node_type\"") != std::string::npos;
  OK_OR_RETURN(metadata, is_third ? parse_zarr_v3(text, subject) : parse_zarr_v2(text, "", subject));
  if (metadata.sharding || metadata.chunks != about.chunks || metadata.shape != about.shape ||
      metadata.type.bytes != about.element_bytes) {
    return corrupt("{}: its coding is that of another array", subject);
  }
  return zarr_chunk_coder(metadata);
}

}  // namespace stoker::formats
