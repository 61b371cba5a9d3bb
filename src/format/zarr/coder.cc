#include "format/zarr/coder.h"

#include "format/zarr/codec.h"

namespace stoker::formats {

namespace {

// Its text is that of an array with the same chunks and no shards.
class ZarrCoder final : public ChunkCoder {
 public:
  enum class Of { elements, streams };
  ZarrCoder(ZarrMetadata metadata, Of of) : metadata_(std::move(metadata)), of_(of) {}

  Kind kind() const override { return Kind::zarr; }
  std::string to_text() const override { return to_json(metadata_); }
  Result<Buffer> decode(const StoredChunk& /*place*/, std::uint64_t bytes, std::span<const std::byte> stored,
                        std::string_view subject) const override {
    const Extents sizes = of_ == Of::streams ? Extents{bytes} : metadata_.chunks;
    return decode_chunk(metadata_.pipeline, ChunkShape{sizes, metadata_.type}, stored, subject);
  }

 private:
  ZarrMetadata metadata_;
  Of of_;
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
  return std::make_shared<const ZarrCoder>(std::move(plain), ZarrCoder::Of::elements);
}

// Its text is that of an array of one byte in one chunk, whatever the chunks' lengths.
std::shared_ptr<const ChunkCoder> zarr_stream_coder(const ZarrMetadata& metadata) {
  ZarrMetadata stream;
  stream.version = metadata.version;
  stream.shape = {1};
  stream.chunks = {1};
  stream.type = element_type(DType::u8);
  stream.fill = {std::byte{0}};
  stream.separator = metadata.separator;
  stream.has_prefix = metadata.has_prefix;
  stream.pipeline.codecs = (metadata.sharding ? metadata.sharding->inner : metadata.pipeline).codecs;
  return std::make_shared<const ZarrCoder>(std::move(stream), ZarrCoder::Of::streams);
}

Result<std::shared_ptr<const ChunkCoder>> parse_zarr_coder(const std::string& text, const ChunkedArray& about,
                                                           std::string_view subject) {
  // Version 2 has no node_type.
  const bool is_third = text.find("\"node_type\"") != std::string::npos;
  OK_OR_RETURN(metadata, is_third ? parse_zarr_v3(text, subject) : parse_zarr_v2(text, "", subject));
  if (about.is_list()) {
    const Extents one{1};
    const bool holds = !metadata.sharding && metadata.shape == one && metadata.chunks == one &&
                       metadata.type == element_type(DType::u8);
    return holds ? Result(zarr_stream_coder(metadata)) : corrupt("{}: its coding is no stream's", subject);
  }
  if (metadata.type.kind == ElementType::Kind::varying || metadata.sharding ||
      metadata.chunks != about.chunks || metadata.shape != about.shape ||
      metadata.type.bytes != about.element_bytes) {
    return corrupt("{}: its coding is that of another array", subject);
  }
  return zarr_chunk_coder(metadata);
}

}  // namespace stoker::formats
