// An array as an index section holds it: where its chunks lie in the one file of its store.
#include <algorithm>

#include "format/load.h"
#include "format/zarr/array.h"
#include "format/zarr/coder.h"
#include "format/zarr/shard.h"

namespace stoker::formats {

namespace {

constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 26;

std::uint64_t number_of(std::span<const std::uint64_t> at, std::span<const std::uint64_t> counts) {
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < at.size(); ++d) number = number * counts[d] + at[d];
  return number;
}

// The next of a grid in C order; false behind the last.
bool step_on(Extents& at, std::span<const std::uint64_t> counts) {
  for (std::size_t d = at.size(); d > 0; --d) {
    if (++at[d - 1] < counts[d - 1]) return true;
    at[d - 1] = 0;
  }
  return false;
}

// Chunks along each dimension that have elements of the array.
Extents grid(const Extents& shape, const Extents& chunks) {
  Extents counts;
  for (std::size_t d = 0; d < shape.size(); ++d)
    counts.push_back(shape[d] / chunks[d] + (shape[d] % chunks[d] != 0));
  return counts;
}

}  // namespace

// The chunks of one shard: those beyond the array's end are left out.
Status ZarrArray::place_shard(std::span<const std::uint64_t> at, const ZarrFiles::Piece& piece,
                              ChunkedArray& array) const {
  OK_OR_RETURN(index, load_shard_index(at));
  if (index.bytes().empty()) return {};
  const Extents counts = grid(array.shape, array.chunks);
  const Extents inside = chunks_per_shard(metadata_);
  Extents within(at.size());
  for (std::uint64_t i = 0;; ++i) {
    const auto entry = load<ShardEntry>(index.bytes(), i * sizeof(ShardEntry));
    Extents chunk(at.size());
    bool is_inside = true;
    for (std::size_t d = 0; d < at.size(); ++d) {
      chunk[d] = at[d] * inside[d] + within[d];
      is_inside = is_inside && chunk[d] < counts[d];
    }
    if (is_inside && !entry.is_missing())
      array.places[number_of(chunk, counts)] = {piece.begin + entry.offset, entry.bytes, 0};
    if (!step_on(within, inside)) return {};
  }
}

Result<ChunkedArray> ZarrArray::chunked() const {
  RETURN_IF_ERROR(check_elements());
  if (metadata_.shape.empty()) return invalid("{}: is one number", files_->name(path_).string());
  ChunkedArray array{.name = stoker::format("array '{}'", printable(path_)),
                     .shape = metadata_.shape,
                     .chunks = metadata_.inner_chunks(),
                     .element_bytes = metadata_.type.bytes,
                     .fill = metadata_.fill,
                     .head = {},
                     .coder = zarr_chunk_coder(metadata_),
                     .places = {}};
  array.fill.resize(metadata_.type.bytes);
  RETURN_IF_ERROR(place_chunks(array));
  return array;
}

// All chunks of the grid that `array` has.
Status ZarrArray::place_chunks(ChunkedArray& array) const {
  const Extents counts = grid(array.shape, array.chunks);
  std::uint64_t chunks = 1;
  for (const std::uint64_t count : counts)
    chunks = count > kMostChunks ? kMostChunks + 1 : std::min(kMostChunks + 1, chunks * count);
  if (chunks > kMostChunks)
    return invalid("{}: has over {} chunks", files_->name(path_).string(), kMostChunks);
  array.places.resize(chunks);
  if (chunks == 0) return {};
  const Extents objects = grid(metadata_.shape, metadata_.chunks);
  Extents at(objects.size());
  do {
    OK_OR_RETURN(piece, files_->open_file(object_key(at)));
    if (!piece) continue;
    piece->begin += files_->base(object_key(at));  // from here on among all files of the store
    if (metadata_.sharding) {
      RETURN_IF_ERROR(place_shard(at, *piece, array));
    } else {
      array.places[number_of(at, counts)] = {piece->begin, piece->bytes, 0};
    }
  } while (step_on(at, objects));
  return {};
}

}  // namespace stoker::formats
