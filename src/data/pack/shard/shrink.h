// Images made smaller or encoded anew while they are packed: what is lost then is lost. Thread-safe: no
// state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "data/decode/decode.h"

namespace stoker::data {

struct Shrinking {
  /// Images whose shorter side has more pixels get this many there, and as many as fit on the other.
  std::optional<std::uint32_t> shorter_side;
  /// JPEG and WebP files are encoded with this quality, the ones that stay as large too.
  std::optional<int> quality;

  bool is_wanted() const { return shorter_side || quality; }
};

/// An image that was encoded anew.
struct Shrunk {
  std::vector<std::byte> bytes;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

/// The file anew, of the same kind, in 8-bit RGB or grey, resized as the loader resizes (antialiased
/// bilinear); nothing if it stays as it is. A JPEG keeps its EXIF, colour profile and comments, unless its
/// colours were CMYK. Fails as decode_image does.
Result<std::optional<Shrunk>> shrink_image(std::span<const std::byte> file, const ImageInfo& info,
                                           const Shrinking& how);

}  // namespace stoker::data
