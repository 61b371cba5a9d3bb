// Samples that are boxes of arrays: a window that moves over a grid, over several arrays at once. Part of the
// chunk map, which knows the offsets of the arrays' chunks. Values; thread-safe. Layout:
// docs/formats/index.md#windows.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/chunks/box.h"

namespace stoker::codec {

/// Row i is the i-th position of the window in C order: one box of each part, in order.
struct Windows {
  Extents size;    ///< elements of the window along each dimension
  Extents step;    ///< distance between positions
  Extents counts;  ///< positions along each dimension
  struct Part {
    std::uint32_t array = 0;  ///< its number in the map, before this array
    Extents begin;            ///< where its first window begins
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;

  /// Number of positions. REQUIRES: product(counts).
  std::uint64_t rows() const { return *product(counts); }
  /// Begin of window `row` in the part. REQUIRES: row < rows().
  Extents window_begin(const Part& part, std::uint64_t row) const;
  bool operator==(const Windows&) const = default;
};

/// Whether all window positions of `part` are inside an array of that shape.
bool fits(const Windows& windows, const Windows::Part& part, const Extents& shape);

}  // namespace stoker::codec
