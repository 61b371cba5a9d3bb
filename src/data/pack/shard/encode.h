// Pixels to JPEG, PNG and WebP files. Used where pack makes images smaller, and for thumbnails. Thread-safe:
// no state. The same pixels give the same bytes with the same version of the codec.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "data/decode/decode.h"

namespace stoker::data {

struct Encoding {
  ImageKind kind = ImageKind::jpeg;
  int quality = 90;      ///< 1 to 100; PNG has none
  bool is_grey = false;  ///< JPEG: one channel, the first of the pixels
  /// JPEG: a JPEG file whose EXIF, colour profile and comments are taken over; may be empty.
  std::span<const std::byte> markers_of = {};
};

/// Internal if the codec refuses, which only lack of memory or a side over 65 535 pixels explains.
Result<std::vector<std::byte>> encode_image(const ImageView& image, const Encoding& encoding);

}  // namespace stoker::data
