// How much the chunks of a map are: all of them, and those that have to be kept together.
#include <algorithm>
#include <set>

#include "format/chunked/chunk_map.h"

namespace stoker::formats {

namespace {

// That a window touches in any of its places.
std::uint64_t most_chunks(const Windows& windows, const Windows::Part& part, const ChunkedArray& of) {
  std::uint64_t chunks = 1;
  for (std::size_t d = 0; d < of.chunks.size(); ++d) {
    const std::uint64_t chunk = of.chunks[d];
    const bool begins_with_chunks = part.begin[d] % chunk == 0 && windows.step[d] % chunk == 0;
    const std::uint64_t before = begins_with_chunks ? 0 : chunk - 1;
    const std::uint64_t all = of.shape[d] / chunk + (of.shape[d] % chunk != 0);
    chunks *= std::min(all, (before + windows.size[d] + chunk - 1) / chunk);
  }
  return chunks;
}

}  // namespace

bool ChunkMap::shares_chunks() const {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (arrays_[i].held_as != i) return true;
  }
  return false;
}

ChunkMap::Turn ChunkMap::turn(std::uint64_t at) const {
  if (at >= bytes()) return {arrays_.size(), 0, at};
  const Array& array = arrays_[array_at(at)];
  return {array.held_as, (at - array.begin) / array.unit(), at};
}

std::uint64_t ChunkMap::held_for_turns() const {
  std::uint64_t most = largest_window();
  for (const Array& array : arrays_) {
    if (!array.record || array.held_as == static_cast<std::size_t>(&array - arrays_.data())) continue;
    std::uint64_t bytes = array.held_bytes;  // side by side in a row
    for (std::size_t d = 1; d < array.counts.size(); ++d) bytes *= array.counts[d];
    most = std::max(most, bytes);
  }
  return most;
}

ChunkMap::Sum ChunkMap::sum() const {
  Sum sum;
  for (const Array& array : arrays_) {
    for (const StoredChunk& place : array.is.places) {
      if (place.is_missing()) continue;
      const std::uint64_t bytes = array.is.is_list() ? place.unpacked() : array.chunk_bytes;
      ++sum.chunks;
      sum.packed += place.bytes;
      sum.unpacked += bytes;
      sum.largest = std::max(sum.largest, bytes);
    }
  }
  return sum;
}

std::uint64_t ChunkMap::largest_window() const {
  std::uint64_t largest = 0;
  for (const Array& array : arrays_) {
    std::uint64_t bytes = 0;
    std::set<std::size_t> counted;
    for (const Windows::Part& part : array.is.windows.value_or(Windows()).parts) {
      const Array& of = arrays_[part.array];
      if (counted.insert(of.held_as).second) bytes += of.held_bytes;
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

std::uint64_t ChunkMap::most_for_a_sample() const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  std::set<std::uint32_t> shown;  // by windows: they are no samples themselves
  std::uint64_t most = 0;
  for (auto array = arrays_.rbegin(); array != arrays_.rend(); ++array) {
    std::uint64_t bytes = 0;
    if (array->is.windows) {
      for (const Windows::Part& part : array->is.windows->parts) {
        shown.insert(part.array);
        const Array& of = arrays_[part.array];
        bytes = std::min(kMost, bytes + of.chunk_bytes * most_chunks(*array->is.windows, part, of.is));
      }
    } else if (array->is.is_list()) {
      for (const StoredChunk& page : array->is.places) bytes = std::max(bytes, page.unpacked());
    } else if (!shown.contains(static_cast<std::uint32_t>(arrays_.rend() - array - 1))) {
      // Of one dimension, one chunk; else all that lie side by side in a row.
      bytes = array->chunk_bytes;
      for (std::size_t d = 1; d < array->counts.size(); ++d) bytes *= array->counts[d];
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace stoker::formats
