// The image types: 8-bit RGB, rows from the top, no gaps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker::image {

/// A rectangle of pixels in an image.
struct ImageRegion {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;

  bool operator==(const ImageRegion&) const = default;
};

/// A view of pixels. REQUIRES: pixels.size() == 3 * width * height.
struct ImageView {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::span<const std::uint8_t> pixels;
};

/// Owned pixels; decoding the next image reuses the memory.
struct Image {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> pixels;

  ImageView view() const { return {width, height, pixels}; }
};

}  // namespace stoker::image
