// Whether bytes are a whole image, quickly. Used by pack on every file. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/decode/decode.h"

namespace stoker::data {

/// What a look at an image gave.
struct ImageVerdict {
  bool is_good = false;
  ImageInfo info;      ///< when good
  std::string reason;  ///< else one of "empty", "not an image", "truncated", "broken"
  std::string detail;
};

/// Header by the image's own library, then the body as far as that is possible without decoding: JPEG up to
/// its end marker, PNG chunk by chunk with CRCs, WebP's length.
ImageVerdict scan_image(std::span<const std::byte> bytes);
/// The same, and decodes every pixel as the loader will.
ImageVerdict decode_check(std::span<const std::byte> bytes);

}  // namespace stoker::data
