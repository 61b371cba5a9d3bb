#include "arrays/zarr/array.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "arrays/zarr/codec.h"
#include "arrays/zarr/coder.h"
#include "arrays/zarr/shard.h"
#include "arrays/zarr/store.h"
#include "base/language/counted.h"
#include "codec/chunks/coders.h"
#include "codec/load.h"

namespace stoker::arrays {

namespace {

constexpr ByteCount kOwnCache = 256_MiB;

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

// The array for an index section: the offsets of its chunks in the one file of its store.

constexpr std::uint64_t kMaxChunks = std::uint64_t{1} << 26;

// Advances to the next index of a grid in C order; false after the last.
bool advance_index(codec::Extents& at, std::span<const std::uint64_t> counts) {
  for (std::size_t d = at.size(); d > 0; --d) {
    if (++at[d - 1] < counts[d - 1]) return true;
    at[d - 1] = 0;
  }
  return false;
}

// Chunks along each dimension that have elements of the array.
codec::Extents grid(const codec::Extents& shape, const codec::Extents& chunks) {
  codec::Extents counts;
  for (std::size_t d = 0; d < shape.size(); ++d)
    counts.push_back(shape[d] / chunks[d] + (shape[d] % chunks[d] != 0));
  return counts;
}

// Variable-length values, in the encoding of numcodecs' vlen-utf8, vlen-bytes and vlen-array. Before its
// codecs, a chunk starts with their number (u32). For each value, its size (u32) and its bytes follow.

constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 27;
constexpr std::uint64_t kLengthBytes = 4;

// A chunk's values in its unpacked stream.
struct ValueChunk {
  std::uint64_t begin = 0;   // of the stream, among the streams of all chunks
  std::uint64_t values = 0;  // expected number
  std::uint64_t wanted = 0;  // within the array; fewer in the last chunk
  std::uint64_t item = 1;    // bytes of one number of a list
};

Status add_places(std::span<const std::byte> stream, const ValueChunk& chunk, std::string_view subject,
                  std::vector<codec::ValueArray::Range>& places) {
  if (stream.size() < kLengthBytes) return corrupt("{}: the number of values is missing", subject);
  const std::uint64_t count = codec::load<std::uint32_t>(stream, 0);
  if (count < chunk.wanted || count > chunk.values)
    return corrupt("{}: has {} values, expected {}", subject, count, chunk.values);
  std::uint64_t at = kLengthBytes;
  for (std::uint64_t i = 0; i < chunk.wanted; ++i) {
    const std::uint64_t left = stream.size() - at;
    const std::uint64_t bytes = left < kLengthBytes ? 0 : codec::load<std::uint32_t>(stream, at);
    if (left < kLengthBytes || bytes > left - kLengthBytes)
      return corrupt("{}: value {} is outside the chunk", subject, i);
    if (bytes % chunk.item != 0)
      return corrupt("{}: value {} has {} bytes, of {} each", subject, i, bytes, chunk.item);
    places.push_back({chunk.begin + at + kLengthBytes, bytes});
    at += kLengthBytes + bytes;
  }
  return {};
}

// The rows of missing chunks until the size of the streams is known.
constexpr std::uint64_t kUnwritten = ~std::uint64_t{0};

// Unwritten rows refer to a second array: one element, never stored, which reads as the fill value.
void add_fill_value(const std::vector<std::byte>& fill, codec::ValueArray& values) {
  for (codec::ValueArray::Range& place : values.places) {
    if (place.begin == kUnwritten) place.begin = values.array.shape[0];
  }
  values.fill = codec::ChunkedArray{.name = "fill " + values.array.name,
                                    .shape = {1},
                                    .chunks = {1},
                                    .element_bytes = static_cast<std::uint32_t>(fill.size()),
                                    .fill = fill,
                                    .head = {},
                                    .coder = codec::plain_coder(1),
                                    .stored_chunks = {codec::StoredChunk()}};
}

}  // namespace

// The requested region.
struct ZarrArray::Box {
  std::span<const std::uint64_t> begin;
  std::span<const std::uint64_t> size;
  codec::Extents strides;  // of the output
};

Result<std::unique_ptr<ZarrArray>> ZarrArray::open(const Path& store, std::string_view path,
                                                   std::shared_ptr<codec::ChunkCache> cache) {
  STOKER_ASSIGN_OR_RETURN(files, ZarrFiles::open(store));
  return open(std::move(files), path, std::move(cache));
}

Result<std::unique_ptr<ZarrArray>> ZarrArray::open(std::shared_ptr<const ZarrFiles> files,
                                                   std::string_view path,
                                                   std::shared_ptr<codec::ChunkCache> cache) {
  STOKER_ASSIGN_OR_RETURN(metadata, read_zarr_metadata(*files, path));
  if (metadata.sharding && !shard_index_bytes(metadata)) {
    return invalid("{}: a shard of '{}' has more than 16 777 216 chunks, which is not supported",
                   files->name(""), path);
  }
  if (!cache) cache = std::make_shared<codec::ChunkCache>(kOwnCache);
  return std::unique_ptr<ZarrArray>(
      new ZarrArray(std::move(files), path, std::move(metadata), std::move(cache)));
}

ZarrArray::ZarrArray(std::shared_ptr<const ZarrFiles> files, std::string_view path, ZarrMetadata metadata,
                     std::shared_ptr<codec::ChunkCache> cache)
    : files_(std::move(files)), path_(path), metadata_(std::move(metadata)), cache_(std::move(cache)) {
  const codec::Extents& chunks = metadata_.inner_chunks();
  for (std::size_t d = 0; d < chunks.size(); ++d) {
    counts_.push_back(ceil_div(metadata_.shape[d], metadata_.chunks[d]) * (metadata_.chunks[d] / chunks[d]));
  }
  chunk_strides_ = codec::c_strides(chunks, metadata_.type.bytes);
  no_strides_ = codec::Extents(chunks.size());
  const std::span<const std::uint64_t> shape = metadata_.shape;
  row_bytes_ = codec::product(shape.empty() ? shape : shape.subspan(1), metadata_.type.bytes).value_or(0);
  owner_ = cache_->new_owner();
  index_owner_ = cache_->new_owner();
}

ZarrArray::~ZarrArray() {
  cache_->evict(owner_);
  cache_->evict(index_owner_);
}

std::string ZarrArray::object_key(std::span<const std::uint64_t> at) const {
  const std::string key = chunk_key(metadata_, at);
  return path_.empty() ? key : stoker::format("{}/{}", path_, key);
}

// An empty buffer is a missing chunk.
Result<codec::Buffer> ZarrArray::load_object(std::span<const std::uint64_t> at) const {
  const std::string key = object_key(at);
  const Path path = files_->name(key);
  STOKER_ASSIGN_OR_RETURN(file, files_->open_file(key));
  if (!file) return codec::Buffer();
  const ChunkShape shape{metadata_.chunks, metadata_.type};
  const std::uint64_t size = file->bytes;
  const std::uint64_t most = max_stored_bytes(shape.bytes());
  if (size > most) {
    return corrupt("{}: has {} bytes, a chunk of {} is stored in at most {}", path, size, shape.bytes(),
                   most);
  }
  codec::Buffer stored(size);
  if (stored.bytes().size() != size) return unavailable("{}: no memory for {} bytes", path, size);
  STOKER_RETURN_IF_ERROR(file->read_at(0, stored.bytes()));
  return decode_chunk(metadata_.pipeline, shape, stored.bytes(), path.string());
}

Result<codec::Buffer> ZarrArray::load_shard_index(std::span<const std::uint64_t> shard) const {
  const std::string key = object_key(shard);
  const Path path = files_->name(key);
  STOKER_ASSIGN_OR_RETURN(file, files_->open_file(key));
  if (!file) return codec::Buffer();
  const std::uint64_t size = file->bytes;
  const std::uint64_t bytes = *shard_index_bytes(metadata_);
  if (size < bytes) return corrupt("{}: has {} bytes, its index alone needs {}", path, size, bytes);
  codec::Buffer stored(bytes);
  if (stored.bytes().size() != bytes) return unavailable("{}: no memory for {} bytes", path, bytes);
  const bool is_first = metadata_.sharding->index_at == Sharding::IndexAt::start;
  STOKER_RETURN_IF_ERROR(file->read_at(is_first ? 0 : size - bytes, stored.bytes()));
  STOKER_ASSIGN_OR_RETURN(entries,
                          parse_shard_index(*metadata_.sharding, stored.bytes(), size, path.string()));
  codec::Buffer index(entries.size() * sizeof(ShardEntry));
  if (index.bytes().size() == 0) return unavailable("{}: no memory for {} bytes", path, bytes);
  std::memcpy(index.bytes().data(), entries.data(), index.bytes().size());
  return index;
}

Result<codec::Buffer> ZarrArray::load_from_shard(std::span<const std::uint64_t> at) const {
  const Sharding& sharding = *metadata_.sharding;
  const codec::Extents inside = chunks_per_shard(metadata_);
  codec::Extents shard(at.begin(), at.end());
  codec::Extents within(at.begin(), at.end());
  codec::Extents shards = counts_;
  for (std::size_t d = 0; d < at.size(); ++d) {
    shard[d] /= inside[d];
    within[d] %= inside[d];
    shards[d] /= inside[d];
  }
  STOKER_ASSIGN_OR_RETURN(index, cache_->get({index_owner_, codec::linear_index(shard, shards)},
                                             [&] { return load_shard_index(shard); }));
  if (index->bytes().empty()) return codec::Buffer();
  const std::uint64_t number = codec::linear_index(within, inside);
  const auto entry = codec::load<ShardEntry>(index->bytes(), number * sizeof(ShardEntry));
  if (entry.is_missing()) return codec::Buffer();
  const std::string key = object_key(shard);
  const Path path = files_->name(key);
  const std::string subject = format("{}: chunk {}", path, number);
  const ChunkShape shape{sharding.chunks, metadata_.type};
  const std::uint64_t most = max_stored_bytes(shape.bytes());
  if (entry.bytes > most) {
    return corrupt("{}: has {} bytes, a chunk of {} is stored in at most {}", subject, entry.bytes,
                   shape.bytes(), most);
  }
  STOKER_ASSIGN_OR_RETURN(file, files_->open_file(key));
  if (!file || file->bytes < entry.bytes || entry.offset > file->bytes - entry.bytes)
    return corrupt("{}: is beyond the end of its shard", subject);
  codec::Buffer stored(entry.bytes);
  if (stored.bytes().size() != entry.bytes)
    return unavailable("{}: no memory for {} bytes", subject, entry.bytes);
  STOKER_RETURN_IF_ERROR(file->read_at(entry.offset, stored.bytes()));
  return decode_chunk(sharding.inner, shape, stored.bytes(), subject);
}

Status ZarrArray::check_elements() const {
  if (metadata_.type.kind != codec::ElementType::Kind::variable_length) return {};
  return invalid("{}: has variable-length values", files_->name(path_));
}

Result<codec::ChunkCache::Chunk> ZarrArray::chunk(std::span<const std::uint64_t> at) const {
  STOKER_RETURN_IF_ERROR(check_elements());
  return cache_->get({owner_, codec::linear_index(at, counts_)},
                     [&] { return metadata_.sharding ? load_from_shard(at) : load_object(at); });
}

// Copies the intersection of the box and a chunk.
Status ZarrArray::copy_part(const Box& box, std::span<const std::uint64_t> at,
                            std::span<std::byte> out) const {
  const codec::Extents& chunks = metadata_.inner_chunks();
  STOKER_ASSIGN_OR_RETURN(held, chunk(at));
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  codec::Extents size(at.size());
  for (std::size_t d = 0; d < at.size(); ++d) {
    const std::uint64_t chunk_begin = at[d] * chunks[d];
    const std::uint64_t begin = std::max(chunk_begin, box.begin[d]);
    const std::uint64_t end = std::min(chunk_begin + chunks[d], box.begin[d] + box.size[d]);
    size[d] = end - begin;
    from += (begin - chunk_begin) * chunk_strides_[d];
    to += (begin - box.begin[d]) * box.strides[d];
  }
  const std::span<const std::byte> bytes = held->bytes();
  if (bytes.empty()) {
    codec::copy_box({metadata_.fill.data(), no_strides_}, {out.data() + to, box.strides}, size,
                    metadata_.type.bytes);
  } else {
    codec::copy_box({bytes.data() + from, chunk_strides_}, {out.data() + to, box.strides}, size,
                    metadata_.type.bytes);
  }
  return {};
}

Status ZarrArray::read(std::span<const std::uint64_t> begin, std::span<const std::uint64_t> size,
                       std::span<std::byte> out) const {
  const codec::Extents& chunks = metadata_.inner_chunks();
  if (begin.size() != chunks.size() || size.size() != chunks.size()) {
    return invalid("{}: has {} dimensions, {} were requested", files_->name(path_), chunks.size(),
                   begin.size());
  }
  for (std::size_t d = 0; d < chunks.size(); ++d) {
    if (begin[d] > metadata_.shape[d] || size[d] > metadata_.shape[d] - begin[d]) {
      return invalid("{}: dimension {} has {} elements, {} from {} on were requested", files_->name(path_), d,
                     metadata_.shape[d], size[d], begin[d]);
    }
  }
  STOKER_CHECK(codec::product(size, metadata_.type.bytes) == out.size());
  if (out.empty()) return {};
  const Box box{begin, size, codec::c_strides(size, metadata_.type.bytes)};
  codec::Extents at(chunks.size());
  for (std::size_t d = 0; d < at.size(); ++d) at[d] = begin[d] / chunks[d];
  for (;;) {
    STOKER_RETURN_IF_ERROR(copy_part(box, at, out));
    std::size_t d = at.size();
    for (; d > 0; --d) {
      if ((++at[d - 1]) * chunks[d - 1] < begin[d - 1] + size[d - 1]) break;
      at[d - 1] = begin[d - 1] / chunks[d - 1];
    }
    if (d == 0) return {};
  }
}

Result<ZarrFiles::Piece> ZarrArray::contiguous_piece() const {
  STOKER_RETURN_IF_ERROR(check_elements());
  const std::string subject = files_->name(path_).string();
  const Pipeline& pipeline = metadata_.sharding ? metadata_.sharding->inner : metadata_.pipeline;
  if (!pipeline.codecs.empty())
    return invalid("{}: is compressed ({})", subject, to_text(pipeline.codecs[0].kind));
  if (metadata_.shape.size() != 1)
    return invalid("{}: has {} dimensions, not one", subject, metadata_.shape.size());
  if (pipeline.order == codec::ByteOrder::big && metadata_.type.swap_unit() > 1)
    return invalid("{}: is not stored in this machine's byte order", subject);
  if (metadata_.chunks[0] < metadata_.shape[0])
    return invalid("{}: is in separate chunks of {} elements", subject, metadata_.chunks[0]);
  const std::uint64_t first = 0;
  STOKER_ASSIGN_OR_RETURN(piece, files_->open_file(object_key({&first, 1})));
  if (!piece) return invalid("{}: has no stored chunk, only a fill value", subject);
  const std::uint64_t bytes = metadata_.shape[0] * metadata_.type.bytes;
  if (metadata_.sharding) {
    STOKER_ASSIGN_OR_RETURN(index, load_shard_index({&first, 1}));
    const std::uint64_t chunk = metadata_.sharding->chunks[0] * metadata_.type.bytes;
    const auto begin = codec::load<ShardEntry>(index.bytes(), 0).offset;
    for (std::uint64_t i = 0; i * chunk < bytes; ++i) {
      const auto entry = codec::load<ShardEntry>(index.bytes(), i * sizeof(ShardEntry));
      if (entry.offset != begin + i * chunk || entry.bytes != chunk)
        return invalid("{}: its chunks are not contiguous", subject);
    }
    piece->begin += begin;
    piece->bytes -= begin;
  }
  if (piece->bytes < bytes) return corrupt("{}: has {} bytes, expected {}", subject, piece->bytes, bytes);
  piece->bytes = bytes;
  return *piece;
}

Status ZarrArray::read_rows(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const {
  if (metadata_.shape.empty()) return read({}, {}, out);
  codec::Extents begin(metadata_.shape.size());
  codec::Extents size = metadata_.shape;
  begin[0] = first;
  size[0] = count;
  return read(begin, size, out);
}

Status ZarrArray::read_rows(std::span<const std::uint64_t> rows, std::span<std::byte> out) const {
  STOKER_CHECK(out.size() == rows.size() * row_bytes_);
  if (metadata_.shape.empty() || rows.size() < 2) {
    return rows.empty() ? Status() : read_rows(rows[0], 1, out);
  }
  const std::uint64_t last = *std::max_element(rows.begin(), rows.end());
  if (last >= this->rows())
    return invalid("{}: has {}, row {} was requested", files_->name(path_), counted(this->rows(), "row"),
                   last);
  if (out.empty()) return {};  // another dimension has no elements
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
  codec::Extents size = metadata_.shape;
  size[0] = 1;
  const codec::Extents& chunks = metadata_.inner_chunks();
  const codec::Extents strides = codec::c_strides(size, metadata_.type.bytes);
  // Reads chunk by chunk, each with all requested rows in it.
  for (std::size_t from = 0; from < order.size();) {
    const std::uint64_t block = rows[order[from]] / chunks[0];
    std::size_t to = from;
    while (to < order.size() && rows[order[to]] / chunks[0] == block) ++to;
    codec::Extents at(chunks.size());
    at[0] = block;
    for (bool has_more = true; has_more;) {
      const Result<codec::ChunkCache::Chunk> held = chunk(at);  // keeps the chunk while its rows are copied
      if (!held.ok()) return held.error();
      for (std::size_t i = from; i < to; ++i) {
        codec::Extents begin(chunks.size());
        begin[0] = rows[order[i]];
        STOKER_RETURN_IF_ERROR(
            copy_part({begin, size, strides}, at, out.subspan(order[i] * row_bytes_, row_bytes_)));
      }
      std::size_t d = at.size();
      for (; d > 1; --d) {
        if (++at[d - 1] * chunks[d - 1] < metadata_.shape[d - 1]) break;
        at[d - 1] = 0;
      }
      has_more = d > 1;
    }
    from = to;
  }
  return {};
}

// Locates the chunks of one shard, without those beyond the array's end.
Status ZarrArray::locate_shard_chunks(std::span<const std::uint64_t> at, const ZarrFiles::Piece& piece,
                                      codec::ChunkedArray& array) const {
  STOKER_ASSIGN_OR_RETURN(index, load_shard_index(at));
  if (index.bytes().empty()) return {};
  const codec::Extents counts = grid(array.shape, array.chunks);
  const codec::Extents inside = chunks_per_shard(metadata_);
  codec::Extents within(at.size());
  for (std::uint64_t i = 0;; ++i) {
    const auto entry = codec::load<ShardEntry>(index.bytes(), i * sizeof(ShardEntry));
    codec::Extents chunk(at.size());
    bool is_inside = true;
    for (std::size_t d = 0; d < at.size(); ++d) {
      chunk[d] = at[d] * inside[d] + within[d];
      is_inside = is_inside && chunk[d] < counts[d];
    }
    if (is_inside && !entry.is_missing())
      array.stored_chunks[codec::linear_index(chunk, counts)] = {piece.begin + entry.offset, entry.bytes, 0};
    if (!advance_index(within, inside)) return {};
  }
}

Result<codec::ChunkedArray> ZarrArray::chunked() const {
  STOKER_RETURN_IF_ERROR(check_elements());
  if (metadata_.shape.empty()) return invalid("{}: is one number", files_->name(path_).string());
  codec::ChunkedArray array{.name = stoker::format("array '{}'", printable(path_)),
                            .shape = metadata_.shape,
                            .chunks = metadata_.inner_chunks(),
                            .element_bytes = metadata_.type.bytes,
                            .fill = metadata_.fill,
                            .head = {},
                            .coder = zarr_chunk_coder(metadata_),
                            .stored_chunks = {}};
  array.fill.resize(metadata_.type.bytes);
  STOKER_RETURN_IF_ERROR(locate_chunks(array));
  return array;
}

// Locates all chunks in the grid of `array`.
Status ZarrArray::locate_chunks(codec::ChunkedArray& array) const {
  const codec::Extents counts = grid(array.shape, array.chunks);
  std::uint64_t chunks = 1;
  for (const std::uint64_t count : counts)
    chunks = count > kMaxChunks ? kMaxChunks + 1 : std::min(kMaxChunks + 1, chunks * count);
  if (chunks > kMaxChunks) return invalid("{}: has over {} chunks", files_->name(path_).string(), kMaxChunks);
  array.stored_chunks.resize(chunks);
  if (chunks == 0) return {};
  const codec::Extents objects = grid(metadata_.shape, metadata_.chunks);
  codec::Extents at(objects.size());
  do {
    STOKER_ASSIGN_OR_RETURN(piece, files_->open_file(object_key(at)));
    if (!piece) continue;
    piece->begin += files_->base(object_key(at));  // relative to the concatenated files of the store
    if (metadata_.sharding) {
      STOKER_RETURN_IF_ERROR(locate_shard_chunks(at, *piece, array));
    } else {
      array.stored_chunks[codec::linear_index(at, counts)] = {piece->begin, piece->bytes, 0};
    }
  } while (advance_index(at, objects));
  return {};
}

Result<codec::ValueArray> ZarrArray::values() const {
  const std::string subject = files_->name(path_).string();
  if (metadata_.type.kind != codec::ElementType::Kind::variable_length)
    return invalid("{}: has no variable-length values", subject);
  if (metadata_.shape.size() != 1)
    return invalid("{}: has several values per row, which is not supported", subject);
  if (rows() > kMaxValues)
    return invalid("{}: has {} values (at most {} are supported)", subject, rows(), kMaxValues);
  const std::uint64_t item =
      metadata_.type.letter == codec::ElementType::kNumbers ? size_of(metadata_.type.item) : 1;
  codec::ChunkedArray grid;
  grid.shape = metadata_.shape;
  grid.chunks = metadata_.inner_chunks();
  STOKER_RETURN_IF_ERROR(locate_chunks(grid));
  STOKER_ASSIGN_OR_RETURN(parts, files_->parts());
  STOKER_ASSIGN_OR_RETURN(store, codec::ShardFile::open(files_->name(""), std::move(parts)));
  const Pipeline& pipeline = metadata_.sharding ? metadata_.sharding->inner : metadata_.pipeline;
  codec::ValueArray values;
  values.array.name = stoker::format("values of array '{}'", printable(path_));
  values.array.fill = {std::byte{0}};
  values.array.coder = zarr_stream_coder(metadata_);
  const std::vector<std::byte>& fill = metadata_.fill;
  const codec::ValueArray::Range unwritten{fill.empty() ? 0 : kUnwritten, fill.size()};
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < grid.stored_chunks.size(); ++i) {
    const std::uint64_t wanted = std::min(grid.chunks[0], rows() - i * grid.chunks[0]);
    if (grid.stored_chunks[i].is_missing()) {
      values.places.resize(values.places.size() + wanted, unwritten);
      continue;
    }
    const std::string where = stoker::format("{}: chunk {}", subject, i);
    if (grid.stored_chunks[i].bytes > codec::max_packed_bytes(codec::kMaxChunkBytes))
      return invalid("{}: has {} bytes (at most 1 GiB is read at once)", where, grid.stored_chunks[i].bytes);
    codec::Buffer stored(grid.stored_chunks[i].bytes);
    if (stored.bytes().size() != grid.stored_chunks[i].bytes)
      return unavailable("{}: no memory for {} bytes", where, grid.stored_chunks[i].bytes);
    STOKER_RETURN_IF_ERROR(store.read_at(grid.stored_chunks[i].offset, stored.bytes()).with_context(where));
    STOKER_ASSIGN_OR_RETURN(bytes, unpacked_bytes(pipeline, stored.bytes(), codec::kMaxChunkBytes, where));
    const codec::StoredChunk place{grid.stored_chunks[i].offset, grid.stored_chunks[i].bytes, bytes};
    STOKER_ASSIGN_OR_RETURN(stream, values.array.coder->decode(place, bytes, stored.bytes(), where));
    STOKER_RETURN_IF_ERROR(
        add_places(stream.bytes(), {begin, grid.chunks[0], wanted, item}, where, values.places));
    values.array.stored_chunks.push_back(place);
    begin += bytes;
  }
  values.array.shape = {begin};
  if (!fill.empty()) add_fill_value(fill, values);
  return values;
}

}  // namespace stoker::arrays
