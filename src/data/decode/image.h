// An image as all of this room passes it on: 8-bit RGB, rows from the top, no gaps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker::data {

/// A rectangle of pixels in somebody's image.
struct Region {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;

  bool operator==(const Region&) const = default;
};

/// Someone else's pixels. REQUIRES: pixels.size() == 3 * width * height.
struct ImageView {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::span<const std::uint8_t> pixels;
};

/// Owned pixels; the memory is kept when the next image is decoded into it.
struct Image {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> pixels;

  ImageView view() const { return {width, height, pixels}; }
};

}  // namespace stoker::data
