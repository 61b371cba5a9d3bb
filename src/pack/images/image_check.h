// Fast validation of images. Used by pack on every file. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "dataset/manifest.h"
#include "image/decode/decode.h"

namespace stoker::pack {

/// The result of checking an image.
struct ImageVerdict {
  bool is_good = false;
  image::ImageInfo info;          ///< when good
  dataset::ChannelSums channels;  ///< when good and decoded
  std::string reason;             ///< else one of "empty", "not an image", "truncated", "broken"
  std::string detail;
};

/// Checks the header, then the body without decoding: JPEG up to its end marker, PNG chunk by chunk with
/// CRCs, the length of WebP. Typical JPEG headers are parsed here, other headers by the image libraries.
ImageVerdict scan_image(std::span<const std::byte> bytes);
/// Like scan_image(), and decodes every pixel like the loader.
ImageVerdict decode_check(std::span<const std::byte> bytes);

}  // namespace stoker::pack
