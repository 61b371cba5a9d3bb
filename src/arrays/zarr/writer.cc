// Publishing an array:
//   1. its metadata is written as pending.zarr.json, which no reader opens: it identifies the array
//   2. each stored object is written under a temporary name and renamed
//   3. finish() checks that every object exists, and writes .zattrs and then .zarray, or zarr.json, by
//   rename, synced
//                                                                     <- the array exists from here on
//   4. pending.zarr.json is removed
// A crash before 3 leaves objects without metadata: a writer with the same metadata resumes after them.
// Objects are not synced one by one: after a power failure some may be empty, and a reader reports these as
// Corrupt.
#include "arrays/zarr/writer.h"

#include <algorithm>
#include <numeric>

#include "arrays/zarr/codec.h"
#include "arrays/zarr/metadata_parser_internal.h"
#include "arrays/zarr/shard.h"
#include "base/encode.h"
#include "base/file.h"
#include "codec/chunks/parallel.h"

namespace stoker::arrays {

namespace {

constexpr std::string_view kPending = "pending.zarr.json";

std::string_view metadata_name(const ZarrMetadata& metadata) {
  return metadata.version == 2 ? ".zarray" : "zarr.json";
}

// The region of an object's rows that belongs to one chunk.
struct ChunkRegion {
  codec::Extents begin;  // in the given rows
  codec::Extents size;   // smaller than a chunk at the array's edge
};

// Copies the elements of one chunk from the rows, with the fill value beyond the array's edge.
codec::Buffer extract_chunk(std::span<const std::byte> rows, std::span<const std::uint64_t> rows_shape,
                            const ChunkRegion& piece, const codec::Extents& chunk,
                            const ZarrMetadata& metadata) {
  codec::Buffer elements(*codec::product(chunk, metadata.type.bytes));
  if (elements.bytes().empty()) return elements;
  if (piece.size != chunk) codec::fill_with(metadata.fill, elements.bytes());
  const codec::Extents from = codec::c_strides(rows_shape, metadata.type.bytes);
  const codec::Extents to = codec::c_strides(chunk, metadata.type.bytes);
  std::uint64_t offset = 0;
  for (std::size_t d = 0; d < from.size(); ++d) offset += piece.begin[d] * from[d];
  codec::copy_box({rows.data() + offset, from}, {elements.bytes().data(), to}, piece.size,
                  metadata.type.bytes);
  return elements;
}

}  // namespace

Result<ZarrMetadata> zarr_metadata(const ZarrSpec& spec) {
  ZarrMetadata metadata;
  metadata.version = spec.version;
  metadata.shape = spec.shape;
  metadata.chunks = spec.shards.empty() ? spec.chunks : spec.shards;
  metadata.type = spec.type;
  metadata.fill = spec.fill.empty() ? std::vector<std::byte>(spec.type.bytes) : spec.fill;
  metadata.has_prefix = spec.version == 3;
  metadata.separator = spec.version == 3 ? '/' : '.';
  metadata.dimension_names = spec.dimension_names;
  Pipeline pipeline{.axes = {}, .order = spec.order, .codecs = spec.codecs};
  if (spec.is_column_major) {
    for (std::size_t d = spec.shape.size(); d-- > 0;) pipeline.axes.push_back(d);
  }
  for (BytesCodec& codec : pipeline.codecs) {
    if (codec.kind == BytesCodec::Kind::blosc) codec.element_bytes = spec.type.bytes;
  }
  if (spec.shards.empty()) {
    metadata.pipeline = std::move(pipeline);
  } else {
    metadata.sharding = Sharding{.chunks = spec.chunks, .inner = std::move(pipeline)};
  }
  const zarr_json::Json attributes = parse_json<zarr_json::Json>(spec.attributes);
  if (!attributes.is_object()) return invalid("array: attributes are not a JSON object");
  metadata.attributes = json_text(attributes);
  for (const std::string& name : spec.dimension_names) {
    if (!is_utf8(name)) return invalid("array: a dimension's name is not UTF-8");
  }
  if (!spec.dimension_names.empty() && spec.dimension_names.size() != spec.shape.size()) {
    return invalid("array: has {} dimensions and {} names for them", spec.shape.size(),
                   spec.dimension_names.size());
  }
  if (spec.shape.size() > codec::kMaxDimensions)
    return invalid("array: more than {} dimensions", codec::kMaxDimensions);
  if (metadata.fill.size() != spec.type.bytes) return invalid("array: the fill value is not one element");
  if (spec.version == 2 && !zarr_v2_name(spec.type, spec.order))
    return invalid("array: version 2 has no bfloat16");
  STOKER_RETURN_IF_ERROR(check_zarr_metadata(metadata, "array"));
  if (metadata.sharding && !shard_index_bytes(metadata))
    return invalid("array: more than 16 777 216 chunks in a shard");
  const std::optional<std::uint64_t> bytes = codec::product(metadata.chunks, metadata.type.bytes);
  if (!bytes || *bytes > (std::uint64_t{64} << 30))
    return invalid("array: shards over 64 GiB are not supported");
  return metadata;
}

codec::Extents choose_chunk_shape(std::span<const std::uint64_t> shape, std::uint64_t element_bytes,
                                  ByteCount bytes) {
  codec::Extents chunks(shape.begin(), shape.end());
  // Cuts the first dimensions first, so that rows stay whole as long as they fit.
  for (std::uint64_t& size : chunks) {
    const std::span<const std::uint64_t> rest(&size + 1, chunks.data() + chunks.size());
    const std::uint64_t row = codec::product(rest, element_bytes).value_or(~std::uint64_t{0});
    const std::uint64_t whole = std::max<std::uint64_t>(1, size);
    size = std::clamp<std::uint64_t>(bytes.value / std::max<std::uint64_t>(1, row), 1, whole);
    if (row <= bytes.value) break;
  }
  for (std::uint64_t& size : chunks) size = std::max<std::uint64_t>(1, size);
  return chunks;
}

Result<ZarrWriter> ZarrWriter::create(const Path& folder, ZarrMetadata metadata, Existing existing) {
  if (path_exists(folder / metadata_name(metadata))) return exists("{}: is already a Zarr array", folder);
  STOKER_RETURN_IF_ERROR(make_directories(folder));
  const Path pending = folder / kPending;
  const std::string text = to_json(metadata);
  if (path_exists(pending)) {
    if (existing == Existing::fail) return exists("{}: an unfinished array exists here", folder);
    STOKER_ASSIGN_OR_RETURN(begun, read_file(pending));
    if (begun != text) return invalid("{}: the unfinished array here is a different one", folder);
  } else {
    STOKER_RETURN_IF_ERROR(write_file(pending, text, Durability::synced));
  }
  return ZarrWriter(folder, std::move(metadata));
}

std::uint64_t ZarrWriter::blocks() const {
  if (metadata_.shape.empty()) return 1;
  if (codec::product(metadata_.shape) == 0) return 0;
  return metadata_.shape[0] / metadata_.chunks[0] + (metadata_.shape[0] % metadata_.chunks[0] != 0);
}

std::uint64_t ZarrWriter::rows_of(std::uint64_t block) const {
  if (metadata_.shape.empty()) return 1;
  return std::min(metadata_.chunks[0], metadata_.shape[0] - block * metadata_.chunks[0]);
}

// The stored objects of a block, by their index in the grid.
std::vector<codec::Extents> ZarrWriter::objects_of(std::uint64_t block) const {
  std::vector<codec::Extents> objects;
  codec::Extents at(metadata_.shape.size());
  if (at.empty()) return {at};
  at[0] = block;
  for (;;) {
    objects.push_back(at);
    std::size_t d = at.size();
    for (; d > 1; --d) {
      if (++at[d - 1] * metadata_.chunks[d - 1] < metadata_.shape[d - 1]) break;
      at[d - 1] = 0;
    }
    if (d <= 1) return objects;
  }
}

bool ZarrWriter::has_block(std::uint64_t block) const {
  const std::vector<codec::Extents> objects = objects_of(block);
  return std::all_of(objects.begin(), objects.end(), [&](const codec::Extents& at) {
    return path_exists(folder_ / chunk_key(metadata_, at));
  });
}

// `at` is the object's index in the grid.
Result<std::string> ZarrWriter::encode_object(std::span<const std::byte> rows,
                                              std::span<const std::uint64_t> at, std::size_t threads) const {
  codec::Extents rows_shape = metadata_.shape;
  if (!rows_shape.empty()) rows_shape[0] = rows_of(at[0]);
  const codec::Extents& chunk = metadata_.inner_chunks();
  const codec::Extents inside = chunks_per_shard(metadata_);
  const std::uint64_t count = *codec::product(inside);
  std::vector<std::optional<std::string>> chunks(count);
  const Status status = codec::parallel_for(threads, count, [&](std::size_t i) -> Status {
    ChunkRegion piece{codec::Extents(at.size()), codec::Extents(at.size())};
    std::uint64_t rest = i;
    for (std::size_t d = at.size(); d-- > 0; rest /= inside[d]) {
      const std::uint64_t origin = d == 0 ? 0 : at[d] * metadata_.chunks[d];
      piece.begin[d] = origin + rest % inside[d] * chunk[d];
      if (piece.begin[d] >= rows_shape[d]) return {};  // beyond the edge: not stored
      piece.size[d] = std::min(chunk[d], rows_shape[d] - piece.begin[d]);
    }
    const codec::Buffer elements = extract_chunk(rows, rows_shape, piece, chunk, metadata_);
    if (elements.bytes().empty()) return unavailable("{}: no memory for a chunk", folder_);
    const Pipeline& pipeline = metadata_.sharding ? metadata_.sharding->inner : metadata_.pipeline;
    STOKER_ASSIGN_OR_RETURN(packed, encode_chunk(pipeline, {chunk, metadata_.type}, elements.bytes()));
    chunks[i] = std::move(packed);
    return {};
  });
  STOKER_RETURN_IF_ERROR(status);
  return metadata_.sharding ? encode_shard(*metadata_.sharding, chunks) : std::move(*chunks[0]);
}

Status ZarrWriter::write_block(std::uint64_t block, std::span<const std::byte> rows,
                               std::size_t threads) const {
  const std::uint64_t row_bytes =
      *codec::product(metadata_.shape, metadata_.type.bytes) /
      (metadata_.shape.empty() ? 1 : std::max<std::uint64_t>(1, metadata_.shape[0]));
  STOKER_CHECK(block < blocks() && rows.size() == rows_of(block) * row_bytes);
  const std::vector<codec::Extents> objects = objects_of(block);
  const std::size_t inside = metadata_.sharding ? threads : 1;
  return codec::parallel_for(metadata_.sharding ? 1 : threads, objects.size(), [&](std::size_t i) -> Status {
    const Path path = folder_ / chunk_key(metadata_, objects[i]);
    STOKER_ASSIGN_OR_RETURN(object, encode_object(rows, objects[i], inside));
    STOKER_RETURN_IF_ERROR(make_directories(path.parent_path()));
    return write_file(path, object);
  });
}

Status ZarrWriter::finish() const {
  for (std::uint64_t block = 0; block < blocks(); ++block) {
    if (!has_block(block)) return invalid("{}: block {} of {} was not written", folder_, block + 1, blocks());
  }
  if (metadata_.version == 2 && metadata_.attributes != "{}") {
    STOKER_RETURN_IF_ERROR(write_file(folder_ / ".zattrs", metadata_.attributes, Durability::synced));
  }
  STOKER_RETURN_IF_ERROR(
      write_file(folder_ / metadata_name(metadata_), to_json(metadata_), Durability::synced));
  return remove_file(folder_ / kPending);
}

}  // namespace stoker::arrays
