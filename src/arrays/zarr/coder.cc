#include "arrays/zarr/coder.h"

#include "arrays/zarr/codec.h"

namespace stoker::arrays {

namespace {

// to_text() is the metadata of an array with the same chunks and no shards.
class ZarrCoder final : public codec::ChunkCoder {
 public:
  enum class Content { elements, streams };
  ZarrCoder(ZarrMetadata metadata, Content content) : metadata_(std::move(metadata)), content_(content) {}

  Kind kind() const override { return Kind::zarr; }
  std::string to_text() const override { return to_json(metadata_); }
  Result<codec::Buffer> decode(const codec::StoredChunk& /*place*/, std::uint64_t bytes,
                               std::span<const std::byte> stored, std::string_view subject) const override {
    const codec::Extents sizes = content_ == Content::streams ? codec::Extents{bytes} : metadata_.chunks;
    return decode_chunk(metadata_.pipeline, ChunkShape{sizes, metadata_.type}, stored, subject);
  }

 private:
  ZarrMetadata metadata_;
  Content content_;
};

}  // namespace

std::shared_ptr<const codec::ChunkCoder> zarr_chunk_coder(const ZarrMetadata& metadata) {
  ZarrMetadata plain = metadata;
  if (plain.sharding) {
    plain.chunks = plain.sharding->chunks;
    plain.pipeline = plain.sharding->inner;
    plain.sharding.reset();
  }
  plain.attributes = "{}";
  plain.dimension_names.clear();
  return std::make_shared<const ZarrCoder>(std::move(plain), ZarrCoder::Content::elements);
}

// to_text() is the metadata of an array of one byte in one chunk, whatever the chunks' lengths.
std::shared_ptr<const codec::ChunkCoder> zarr_stream_coder(const ZarrMetadata& metadata) {
  ZarrMetadata stream;
  stream.version = metadata.version;
  stream.shape = {1};
  stream.chunks = {1};
  stream.type = codec::element_type(DType::u8);
  stream.fill = {std::byte{0}};
  stream.separator = metadata.separator;
  stream.has_prefix = metadata.has_prefix;
  stream.pipeline.codecs = (metadata.sharding ? metadata.sharding->inner : metadata.pipeline).codecs;
  return std::make_shared<const ZarrCoder>(std::move(stream), ZarrCoder::Content::streams);
}

Result<std::shared_ptr<const codec::ChunkCoder>> parse_zarr_coder(const std::string& text,
                                                                  const codec::ChunkedArray& about,
                                                                  std::string_view subject) {
  // Version 2 has no node_type.
  const bool is_third = text.find("\"node_type\"") != std::string::npos;
  STOKER_ASSIGN_OR_RETURN(metadata,
                          is_third ? parse_zarr_v3(text, subject) : parse_zarr_v2(text, "", subject));
  if (about.is_list()) {
    const codec::Extents one{1};
    const bool holds = !metadata.sharding && metadata.shape == one && metadata.chunks == one &&
                       metadata.type == codec::element_type(DType::u8);
    return holds ? Result(zarr_stream_coder(metadata))
                 : corrupt("{}: its coder is not that of a stream", subject);
  }
  if (metadata.type.kind == codec::ElementType::Kind::variable_length || metadata.sharding ||
      metadata.chunks != about.chunks || metadata.shape != about.shape ||
      metadata.type.bytes != about.element_bytes) {
    return corrupt("{}: its coder belongs to a different array", subject);
  }
  return zarr_chunk_coder(metadata);
}

}  // namespace stoker::arrays
