#include "arrays/numpy/npy_chunks.h"

#include <algorithm>

#include "codec/chunks/coders.h"
#include "stoker/text.h"

namespace stoker::arrays {

namespace {

using codec::Extents;

constexpr std::uint64_t kChunkBytes = 1u << 20;
constexpr std::uint64_t kMaxChunks = std::uint64_t{1} << 24;

// One element along the first dimensions, several along one, all along the following ones.
Extents chunks_of(const Extents& shape, std::uint64_t element_bytes) {
  Extents chunks = shape;
  std::uint64_t below = element_bytes;  // bytes of a slice along the dimensions after d
  for (std::size_t d = shape.size(); d-- > 0;) {
    chunks[d] = std::clamp<std::uint64_t>(kChunkBytes / below, 1, shape[d]);
    if (chunks[d] < shape[d]) {
      std::fill_n(chunks.begin(), d, 1);
      break;
    }
    below *= shape[d];
  }
  return chunks;
}

// The chunks' places; the last chunk along a dimension is shorter.
std::vector<codec::StoredChunk> places_of(const Extents& shape, const Extents& chunks,
                                          std::uint64_t element_bytes, std::uint64_t begin) {
  const Extents strides = codec::c_strides(shape, element_bytes);
  Extents counts;
  std::uint64_t all = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    counts.push_back((shape[d] + chunks[d] - 1) / chunks[d]);
    all *= counts[d];
  }
  std::vector<codec::StoredChunk> places(all);
  for (std::uint64_t number = 0; number < all; ++number) {
    std::uint64_t rest = number;
    std::uint64_t offset = begin;
    std::uint64_t bytes = element_bytes;
    for (std::size_t d = shape.size(); d-- > 0; rest /= counts[d]) {
      const std::uint64_t first = rest % counts[d] * chunks[d];
      offset += first * strides[d];
      bytes *= std::min(chunks[d], shape[d] - first);
    }
    places[number] = {offset, bytes, 0};
  }
  return places;
}

}  // namespace

Result<codec::ChunkedArray> npy_chunks(const NpyElements& elements, std::string_view subject) {
  const Extents chunks = chunks_of(elements.shape, elements.element_bytes);
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < chunks.size(); ++d) count *= (elements.shape[d] + chunks[d] - 1) / chunks[d];
  if (count > kMaxChunks) return invalid("{}: is larger than {} MiB", subject, kMaxChunks);
  return codec::ChunkedArray{
      .name = format("array '{}'", printable(elements.name)),
      .shape = elements.shape,
      .chunks = chunks,
      .element_bytes = elements.element_bytes,
      .fill = std::vector<std::byte>(elements.element_bytes),
      .head = {},
      .coder = codec::plain_coder(elements.swap_unit),
      .stored_chunks = places_of(elements.shape, chunks, elements.element_bytes, elements.begin)};
}

}  // namespace stoker::arrays
