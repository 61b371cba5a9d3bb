// Resizing as Pillow's Image.resize(BILINEAR) does it: a triangle filter as wide as the reduction, 22-bit
// fixed point, first across, then down. Used by Transform. Thread-compatible: scratch memory is kept.
#pragma once

#include <cstdint>
#include <vector>

#include "data/decode/image.h"

namespace stoker::data {

/// A rectangle of pixels in somebody's image.
struct Region {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

/// Resizes parts of images.
class Resizer {
 public:
  /// Takes `part` of `image` as an image of its own, resizes it to width x height, and keeps `window` of
  /// that: only those pixels are computed. The view is valid until the next call. REQUIRES: `part` lies in
  /// the image and is not empty, `window` lies in width x height and is not empty.
  ImageView resize(const ImageView& image, const Region& part, std::uint32_t width, std::uint32_t height,
                   const Region& window);

 private:
  // Which source pixels make one result pixel, and their weights in 1 / 2^22.
  struct Tap {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::size_t weights = 0;
  };
  struct Filter {
    std::vector<Tap> taps;
    std::vector<std::int32_t> weights;
  };
  static void make_filter(std::uint32_t from, std::uint32_t to, std::uint32_t begin, std::uint32_t count,
                          Filter& filter);
  void across(const std::uint8_t* row, std::uint8_t* out) const;
  void down(const Region& window, std::uint32_t first_row);

  Filter horizontal_;
  Filter vertical_;
  std::vector<std::uint8_t> rows_;    // resized across only
  std::vector<std::uint8_t> pixels_;  // the result
  std::vector<std::int32_t> sums_;
};

}  // namespace stoker::data
