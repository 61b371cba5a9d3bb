// Encodes pixels as JPEG, PNG and WebP. Used by pack to make images smaller, and for thumbnails.
// Thread-safe: no state. The same pixels give the same bytes with the same version of the codec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "image/decode/decode.h"
#include "stoker/status.h"

namespace stoker::image {

struct Encoding {
  ImageKind kind = ImageKind::jpeg;
  int quality = 90;      ///< 1 to 100; not for PNG
  bool is_grey = false;  ///< JPEG: one channel, the first of the pixels
  /// JPEG: a JPEG file whose EXIF, colour profile and comments are copied; may be empty.
  std::span<const std::byte> metadata_from = {};
};

/// Internal if the codec fails, which means that memory is short or a side is over 65 535 pixels.
Result<std::vector<std::byte>> encode_image(const ImageView& image, const Encoding& encoding);

/// A PNG file of pixels with 1 (grey), 2 (grey, alpha), 3 or 4 channels of 8 bits, row by row without gaps.
/// Internal as above.
Result<std::vector<std::byte>> encode_png(std::uint32_t width, std::uint32_t height, std::uint32_t channels,
                                          std::span<const std::byte> pixels);

}  // namespace stoker::image
