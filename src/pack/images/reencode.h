// Lossy resizing and re-encoding of images while packing. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "image/decode/decode.h"
#include "stoker/status.h"

namespace stoker::pack {

struct ReencodeOptions {
  /// Resizes images whose shorter side is larger to this many pixels, keeping the aspect ratio.
  std::optional<std::uint32_t> shorter_side;
  /// Re-encodes all JPEG and WebP files with this quality, including unresized ones.
  std::optional<int> quality;

  bool is_set() const { return shorter_side || quality; }
};

struct ReencodedImage {
  std::vector<std::byte> bytes;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

/// Re-encodes the file in its format, in 8-bit RGB or grey, resized like the loader does (antialiased
/// bilinear); nullopt if nothing changes. A JPEG keeps its EXIF, colour profile and comments, unless it is
/// CMYK. Fails like decode_image().
Result<std::optional<ReencodedImage>> reencode_image(std::span<const std::byte> file,
                                                     const image::ImageInfo& info,
                                                     const ReencodeOptions& how);

}  // namespace stoker::pack
