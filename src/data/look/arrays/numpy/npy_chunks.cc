#include "data/look/arrays/numpy/npy_chunks.h"

#include <algorithm>

#include "base/text.h"
#include "format/chunked/coders.h"

namespace stoker::data {

namespace {

using formats::Extents;

constexpr std::uint64_t kChunkBytes = 1u << 20;
constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 24;

// One along the first dimensions, some along one, all along those behind it.
Extents chunks_of(const Extents& shape, std::uint64_t element_bytes) {
  Extents chunks = shape;
  std::uint64_t below = element_bytes;  // bytes of all along the dimensions behind d
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

// Where each lies; the last along a dimension is shorter.
std::vector<formats::StoredChunk> places_of(const Extents& shape, const Extents& chunks,
                                            std::uint64_t element_bytes, std::uint64_t begin) {
  const Extents strides = formats::c_strides(shape, element_bytes);
  Extents counts;
  std::uint64_t all = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    counts.push_back((shape[d] + chunks[d] - 1) / chunks[d]);
    all *= counts[d];
  }
  std::vector<formats::StoredChunk> places(all);
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

Result<formats::ChunkedArray> npy_chunks(const NpyElements& elements, std::string_view subject) {
  const Extents chunks = chunks_of(elements.shape, elements.element_bytes);
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < chunks.size(); ++d) count *= (elements.shape[d] + chunks[d] - 1) / chunks[d];
  if (count > kMostChunks) return invalid("{}: has over {} MiB, which is too large", subject, kMostChunks);
  return formats::ChunkedArray{
      .name = format("array '{}'", printable(elements.name)),
      .shape = elements.shape,
      .chunks = chunks,
      .element_bytes = elements.element_bytes,
      .fill = std::vector<std::byte>(elements.element_bytes),
      .head = {},
      .coder = formats::plain_coder(elements.swap_unit),
      .places = places_of(elements.shape, chunks, elements.element_bytes, elements.begin)};
}

}  // namespace stoker::data
