// Whether bytes are a whole image, quickly. Used by pack on every file. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/decode/decode.h"
#include "format/manifest.h"

namespace stoker::data {

/// What a look at an image gave.
struct ImageVerdict {
  bool is_good = false;
  ImageInfo info;                 ///< when good
  formats::ChannelSums channels;  ///< when good and decoded
  std::string reason;             ///< else one of "empty", "not an image", "truncated", "broken"
  std::string detail;
};

/// Header, then the body as far as that is possible without decoding: JPEG up to its end marker, PNG chunk by
/// chunk with CRCs, WebP's length. A plain JPEG's header is read here, an unusual one's by its library.
ImageVerdict scan_image(std::span<const std::byte> bytes);
/// The same, and decodes every pixel as the loader will.
ImageVerdict decode_check(std::span<const std::byte> bytes);

}  // namespace stoker::data
