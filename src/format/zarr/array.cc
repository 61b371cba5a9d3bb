#include "format/zarr/array.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "format/load.h"
#include "format/zarr/codec.h"
#include "format/zarr/shard.h"
#include "format/zarr/store.h"

namespace stoker::formats {

namespace {

constexpr ByteCount kOwnCache = 256_MiB;

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

// The number of a chunk among all, counted in C order.
std::uint64_t linear(std::span<const std::uint64_t> at, std::span<const std::uint64_t> counts) {
  std::uint64_t index = 0;
  for (std::size_t d = 0; d < at.size(); ++d) index = index * counts[d] + at[d];
  return index;
}

}  // namespace

// What is read, and which chunks it meets.
struct ZarrArray::Box {
  std::span<const std::uint64_t> begin;
  std::span<const std::uint64_t> size;
  Extents strides;  // of the output
};

Result<std::unique_ptr<ZarrArray>> ZarrArray::open(const Path& store, std::string_view path,
                                                   std::shared_ptr<ChunkCache> cache) {
  OK_OR_RETURN(files, ZarrFiles::open(store));
  return open(std::move(files), path, std::move(cache));
}

Result<std::unique_ptr<ZarrArray>> ZarrArray::open(std::shared_ptr<const ZarrFiles> files,
                                                   std::string_view path, std::shared_ptr<ChunkCache> cache) {
  OK_OR_RETURN(metadata, read_zarr_metadata(*files, path));
  if (metadata.sharding && !shard_index_bytes(metadata)) {
    return invalid("{}: a shard of '{}' has more than 16 777 216 chunks, which is not read", files->name(""),
                   path);
  }
  if (!cache) cache = std::make_shared<ChunkCache>(kOwnCache);
  return std::unique_ptr<ZarrArray>(
      new ZarrArray(std::move(files), path, std::move(metadata), std::move(cache)));
}

ZarrArray::ZarrArray(std::shared_ptr<const ZarrFiles> files, std::string_view path, ZarrMetadata metadata,
                     std::shared_ptr<ChunkCache> cache)
    : files_(std::move(files)), path_(path), metadata_(std::move(metadata)), cache_(std::move(cache)) {
  const Extents& chunks = metadata_.inner_chunks();
  for (std::size_t d = 0; d < chunks.size(); ++d) {
    counts_.push_back(ceil_div(metadata_.shape[d], metadata_.chunks[d]) * (metadata_.chunks[d] / chunks[d]));
  }
  chunk_strides_ = c_strides(chunks, metadata_.type.bytes);
  no_strides_ = Extents(chunks.size());
  const std::span<const std::uint64_t> shape = metadata_.shape;
  row_bytes_ = product(shape.empty() ? shape : shape.subspan(1), metadata_.type.bytes).value_or(0);
  owner_ = cache_->new_owner();
  index_owner_ = cache_->new_owner();
}

ZarrArray::~ZarrArray() {
  cache_->forget(owner_);
  cache_->forget(index_owner_);
}

std::string ZarrArray::object_key(std::span<const std::uint64_t> at) const {
  const std::string key = chunk_key(metadata_, at);
  return path_.empty() ? key : stoker::format("{}/{}", path_, key);
}

// An empty buffer stands for a chunk that is not stored.
Result<Buffer> ZarrArray::load_object(std::span<const std::uint64_t> at) const {
  const std::string key = object_key(at);
  const Path path = files_->name(key);
  OK_OR_RETURN(file, files_->open_file(key));
  if (!file) return Buffer();
  const ChunkShape shape{metadata_.chunks, metadata_.type};
  const std::uint64_t size = file->bytes;
  const std::uint64_t most = most_stored_bytes(shape.bytes());
  if (size > most) {
    return corrupt("{}: has {} bytes, a chunk of {} is stored in at most {}", path, size, shape.bytes(),
                   most);
  }
  Buffer stored(size);
  if (stored.bytes().size() != size) return unavailable("{}: no memory for {} bytes", path, size);
  RETURN_IF_ERROR(file->read_at(0, stored.bytes()));
  return decode_chunk(metadata_.pipeline, shape, stored.bytes(), path.string());
}

Result<Buffer> ZarrArray::load_shard_index(std::span<const std::uint64_t> shard) const {
  const std::string key = object_key(shard);
  const Path path = files_->name(key);
  OK_OR_RETURN(file, files_->open_file(key));
  if (!file) return Buffer();
  const std::uint64_t size = file->bytes;
  const std::uint64_t bytes = *shard_index_bytes(metadata_);
  if (size < bytes) return corrupt("{}: has {} bytes, its index alone needs {}", path, size, bytes);
  Buffer stored(bytes);
  if (stored.bytes().size() != bytes) return unavailable("{}: no memory for {} bytes", path, bytes);
  const bool is_first = metadata_.sharding->index_at == Sharding::IndexAt::start;
  RETURN_IF_ERROR(file->read_at(is_first ? 0 : size - bytes, stored.bytes()));
  OK_OR_RETURN(entries, parse_shard_index(*metadata_.sharding, stored.bytes(), size, path.string()));
  Buffer index(entries.size() * sizeof(ShardEntry));
  if (index.bytes().size() == 0) return unavailable("{}: no memory for {} bytes", path, bytes);
  std::memcpy(index.bytes().data(), entries.data(), index.bytes().size());
  return index;
}

Result<Buffer> ZarrArray::load_from_shard(std::span<const std::uint64_t> at) const {
  const Sharding& sharding = *metadata_.sharding;
  const Extents inside = chunks_per_shard(metadata_);
  Extents shard(at.begin(), at.end());
  Extents within(at.begin(), at.end());
  Extents shards = counts_;
  for (std::size_t d = 0; d < at.size(); ++d) {
    shard[d] /= inside[d];
    within[d] %= inside[d];
    shards[d] /= inside[d];
  }
  OK_OR_RETURN(index,
               cache_->get({index_owner_, linear(shard, shards)}, [&] { return load_shard_index(shard); }));
  if (index->bytes().empty()) return Buffer();
  const std::uint64_t number = linear(within, inside);
  const auto entry = load<ShardEntry>(index->bytes(), number * sizeof(ShardEntry));
  if (entry.is_missing()) return Buffer();
  const std::string key = object_key(shard);
  const Path path = files_->name(key);
  const std::string subject = format("{}: chunk {}", path, number);
  const ChunkShape shape{sharding.chunks, metadata_.type};
  const std::uint64_t most = most_stored_bytes(shape.bytes());
  if (entry.bytes > most) {
    return corrupt("{}: has {} bytes, a chunk of {} is stored in at most {}", subject, entry.bytes,
                   shape.bytes(), most);
  }
  OK_OR_RETURN(file, files_->open_file(key));
  if (!file || file->bytes < entry.bytes || entry.offset > file->bytes - entry.bytes)
    return corrupt("{}: lies beyond the end of its shard", subject);
  Buffer stored(entry.bytes);
  if (stored.bytes().size() != entry.bytes)
    return unavailable("{}: no memory for {} bytes", subject, entry.bytes);
  RETURN_IF_ERROR(file->read_at(entry.offset, stored.bytes()));
  return decode_chunk(sharding.inner, shape, stored.bytes(), subject);
}

Status ZarrArray::check_elements() const {
  if (metadata_.type.kind != ElementType::Kind::varying) return {};
  return invalid("{}: has values of different lengths", files_->name(path_));
}

Result<ChunkCache::Chunk> ZarrArray::chunk(std::span<const std::uint64_t> at) const {
  RETURN_IF_ERROR(check_elements());
  return cache_->get({owner_, linear(at, counts_)},
                     [&] { return metadata_.sharding ? load_from_shard(at) : load_object(at); });
}

// Copies what the box and one chunk share.
Status ZarrArray::copy_part(const Box& box, std::span<const std::uint64_t> at,
                            std::span<std::byte> out) const {
  const Extents& chunks = metadata_.inner_chunks();
  OK_OR_RETURN(held, chunk(at));
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  Extents size(at.size());
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
    copy_box({metadata_.fill.data(), no_strides_}, {out.data() + to, box.strides}, size,
             metadata_.type.bytes);
  } else {
    copy_box({bytes.data() + from, chunk_strides_}, {out.data() + to, box.strides}, size,
             metadata_.type.bytes);
  }
  return {};
}

Status ZarrArray::read(std::span<const std::uint64_t> begin, std::span<const std::uint64_t> size,
                       std::span<std::byte> out) const {
  const Extents& chunks = metadata_.inner_chunks();
  if (begin.size() != chunks.size() || size.size() != chunks.size()) {
    return invalid("{}: has {} dimensions, {} were asked for", files_->name(path_), chunks.size(),
                   begin.size());
  }
  for (std::size_t d = 0; d < chunks.size(); ++d) {
    if (begin[d] > metadata_.shape[d] || size[d] > metadata_.shape[d] - begin[d]) {
      return invalid("{}: dimension {} has {} elements, {} from {} on were asked for", files_->name(path_), d,
                     metadata_.shape[d], size[d], begin[d]);
    }
  }
  CHECK(product(size, metadata_.type.bytes) == out.size());
  if (out.empty()) return {};
  const Box box{begin, size, c_strides(size, metadata_.type.bytes)};
  Extents at(chunks.size());
  for (std::size_t d = 0; d < at.size(); ++d) at[d] = begin[d] / chunks[d];
  for (;;) {
    RETURN_IF_ERROR(copy_part(box, at, out));
    std::size_t d = at.size();
    for (; d > 0; --d) {
      if ((++at[d - 1]) * chunks[d - 1] < begin[d - 1] + size[d - 1]) break;
      at[d - 1] = begin[d - 1] / chunks[d - 1];
    }
    if (d == 0) return {};
  }
}

Result<ZarrFiles::Piece> ZarrArray::run() const {
  RETURN_IF_ERROR(check_elements());
  const std::string subject = files_->name(path_).string();
  const Pipeline& pipeline = metadata_.sharding ? metadata_.sharding->inner : metadata_.pipeline;
  if (!pipeline.codecs.empty())
    return invalid("{}: is compressed ({})", subject, to_text(pipeline.codecs[0].kind));
  if (metadata_.shape.size() != 1 || (pipeline.order == ByteOrder::big && metadata_.type.swap_unit() > 1))
    return invalid("{}: is not stored as it is read", subject);
  if (metadata_.chunks[0] < metadata_.shape[0])
    return invalid("{}: lies in chunks of {} elements, each by itself", subject, metadata_.chunks[0]);
  const std::uint64_t first = 0;
  OK_OR_RETURN(piece, files_->open_file(object_key({&first, 1})));
  if (!piece) return invalid("{}: is not stored, only its fill value is", subject);
  const std::uint64_t bytes = metadata_.shape[0] * metadata_.type.bytes;
  if (metadata_.sharding) {
    OK_OR_RETURN(index, load_shard_index({&first, 1}));
    const std::uint64_t chunk = metadata_.sharding->chunks[0] * metadata_.type.bytes;
    const auto begin = load<ShardEntry>(index.bytes(), 0).offset;
    for (std::uint64_t i = 0; i * chunk < bytes; ++i) {
      const auto entry = load<ShardEntry>(index.bytes(), i * sizeof(ShardEntry));
      if (entry.offset != begin + i * chunk || entry.bytes != chunk)
        return invalid("{}: its chunks do not lie one behind another", subject);
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
  Extents begin(metadata_.shape.size());
  Extents size = metadata_.shape;
  begin[0] = first;
  size[0] = count;
  return read(begin, size, out);
}

Status ZarrArray::read_rows(std::span<const std::uint64_t> rows, std::span<std::byte> out) const {
  CHECK(out.size() == rows.size() * row_bytes_);
  if (metadata_.shape.empty() || rows.size() < 2) {
    return rows.empty() ? Status() : read_rows(rows[0], 1, out);
  }
  const std::uint64_t last = *std::max_element(rows.begin(), rows.end());
  if (last >= this->rows())
    return invalid("{}: has {} rows, row {} was asked for", files_->name(path_), this->rows(), last);
  if (out.empty()) return {};  // another dimension has no elements
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
  Extents size = metadata_.shape;
  size[0] = 1;
  const Extents& chunks = metadata_.inner_chunks();
  const Extents strides = c_strides(size, metadata_.type.bytes);
  // Chunk by chunk: those of the same rows one after another, each with all the rows that are asked of it.
  for (std::size_t from = 0; from < order.size();) {
    const std::uint64_t block = rows[order[from]] / chunks[0];
    std::size_t to = from;
    while (to < order.size() && rows[order[to]] / chunks[0] == block) ++to;
    Extents at(chunks.size());
    at[0] = block;
    for (bool has_more = true; has_more;) {
      const Result<ChunkCache::Chunk> held = chunk(at);  // stays while its rows are copied
      if (!held.ok()) return held.error();
      for (std::size_t i = from; i < to; ++i) {
        Extents begin(chunks.size());
        begin[0] = rows[order[i]];
        RETURN_IF_ERROR(
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

}  // namespace stoker::formats
