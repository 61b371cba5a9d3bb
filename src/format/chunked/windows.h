// Samples that are boxes of arrays: a window that moves over a grid, over several arrays at once. Part of the
// map of chunks, which knows where the arrays' chunks lie. Values; thread-safe. Layout:
// docs/formats/index.md#windows.
#pragma once

#include <cstdint>
#include <vector>

#include "format/chunks/box.h"

namespace stoker::formats {

/// Row i of it is the i-th place of the window, in C order of the places, in each part one behind another.
struct Windows {
  Extents size;    ///< elements of the window along each dimension
  Extents step;    ///< from one place to the next
  Extents counts;  ///< places along each dimension
  struct Part {
    std::uint32_t array = 0;  ///< its number in the map: one before this
    Extents begin;            ///< where its first window begins
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;

  /// Places in all. REQUIRES: product(counts).
  std::uint64_t rows() const { return *product(counts); }
  /// Where window `row` of the part begins. REQUIRES: row < rows().
  Extents begin_of(const Part& part, std::uint64_t row) const;
  bool operator==(const Windows&) const = default;
};

/// Whether `part` lies in an array of that shape in every place of the window.
bool fits(const Windows& windows, const Windows::Part& part, const Extents& shape);

}  // namespace stoker::formats
