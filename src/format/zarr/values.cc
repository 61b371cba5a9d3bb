// Values of different lengths: a chunk is, before its codecs, their number (u32), then for each its bytes
// (u32) and these, as numcodecs' vlen-utf8, vlen-bytes and vlen-array write them.
#include <algorithm>

#include "format/load.h"
#include "format/zarr/array.h"
#include "format/zarr/codec.h"
#include "format/zarr/coder.h"

namespace stoker::formats {

namespace {

constexpr std::uint64_t kMostValues = std::uint64_t{1} << 27;
constexpr std::uint64_t kLengthBytes = 4;

// A chunk's values in the stream of bytes that it unpacks to.
struct ValueChunk {
  std::uint64_t begin = 0;   // of the stream, among those of all chunks
  std::uint64_t values = 0;  // that it should have
  std::uint64_t wanted = 0;  // of these; fewer in the last chunk
  std::uint64_t item = 1;    // bytes of one of a list's numbers
};

Status add_places(std::span<const std::byte> stream, const ValueChunk& chunk, std::string_view subject,
                  std::vector<ValueArray::Place>& places) {
  if (stream.size() < kLengthBytes) return corrupt("{}: has no number of values", subject);
  const std::uint64_t count = load<std::uint32_t>(stream, 0);
  if (count < chunk.wanted || count > chunk.values)
    return corrupt("{}: has {} values, expected {}", subject, count, chunk.values);
  std::uint64_t at = kLengthBytes;
  for (std::uint64_t i = 0; i < chunk.wanted; ++i) {
    const std::uint64_t left = stream.size() - at;
    const std::uint64_t bytes = left < kLengthBytes ? 0 : load<std::uint32_t>(stream, at);
    if (left < kLengthBytes || bytes > left - kLengthBytes)
      return corrupt("{}: value {} does not lie in it", subject, i);
    if (bytes % chunk.item != 0)
      return corrupt("{}: value {} has {} bytes, of {} each", subject, i, bytes, chunk.item);
    places.push_back({chunk.begin + at + kLengthBytes, bytes});
    at += kLengthBytes + bytes;
  }
  return {};
}

}  // namespace

Result<ValueArray> ZarrArray::values() const {
  const std::string subject = files_->name(path_).string();
  if (metadata_.type.kind != ElementType::Kind::varying)
    return invalid("{}: has no values of different lengths", subject);
  if (metadata_.shape.size() != 1)
    return invalid("{}: has several values in a row, which is not read", subject);
  if (rows() > kMostValues)
    return invalid("{}: has {} values (at most {} are read)", subject, rows(), kMostValues);
  const std::uint64_t item = metadata_.type.letter == ElementType::kNumbers ? size_of(metadata_.type.of) : 1;
  ChunkedArray grid;
  grid.shape = metadata_.shape;
  grid.chunks = metadata_.inner_chunks();
  RETURN_IF_ERROR(place_chunks(grid));
  OK_OR_RETURN(parts, files_->parts());
  OK_OR_RETURN(store, ShardFile::open(files_->name(""), std::move(parts)));
  const Pipeline& pipeline = metadata_.sharding ? metadata_.sharding->inner : metadata_.pipeline;
  ValueArray values;
  values.array.name = stoker::format("values of array '{}'", printable(path_));
  values.array.fill = {std::byte{0}};
  values.array.coder = zarr_stream_coder(metadata_);
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < grid.places.size(); ++i) {
    const std::uint64_t wanted = std::min(grid.chunks[0], rows() - i * grid.chunks[0]);
    if (grid.places[i].is_missing()) {
      values.places.resize(values.places.size() + wanted);
      continue;
    }
    const std::string where = stoker::format("{}: chunk {}", subject, i);
    if (grid.places[i].bytes > most_packed_bytes(kLargestChunk))
      return invalid("{}: has {} bytes (at most 1 GiB is read at once)", where, grid.places[i].bytes);
    Buffer stored(grid.places[i].bytes);
    if (stored.bytes().size() != grid.places[i].bytes)
      return unavailable("{}: no memory for {} bytes", where, grid.places[i].bytes);
    RETURN_IF_ERROR(store.read_at(grid.places[i].offset, stored.bytes()).with_context(where));
    OK_OR_RETURN(bytes, unpacked_bytes(pipeline, stored.bytes(), kLargestChunk, where));
    const StoredChunk place{grid.places[i].offset, grid.places[i].bytes, bytes};
    OK_OR_RETURN(stream, values.array.coder->decode(place, bytes, stored.bytes(), where));
    RETURN_IF_ERROR(add_places(stream.bytes(), {begin, grid.chunks[0], wanted, item}, where, values.places));
    values.array.places.push_back(place);
    begin += bytes;
  }
  values.array.shape = {begin};
  return values;
}

}  // namespace stoker::formats
