// A small JPEG of an image, for pages that show many. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "image/decode/image.h"
#include "stoker/status.h"

namespace stoker::inspect {

struct Thumbnail {
  std::string jpeg;
  std::uint32_t width = 0;  ///< of the original
  std::uint32_t height = 0;
};

/// From pixels. Fails like encode_image().
Result<Thumbnail> encode_thumbnail(const image::ImageView& image, std::uint32_t side);

/// At most `side` pixels wide and high; never larger than the original. Fails like decode_image().
Result<Thumbnail> make_thumbnail(std::span<const std::byte> image, std::uint32_t side);

}  // namespace stoker::inspect
