// Shared by the decoders. Only this folder includes it. Thread-safe: no state.
#pragma once

#include <cstdint>

#include "image/decode/decode.h"
#include "stoker/status.h"

namespace stoker::image::codecs {

/// Invalid when an image of that size is empty or exceeds the limit.
Status check_size(ImageKind kind, std::uint64_t width, std::uint64_t height, const DecodeLimits& limits);
/// Sets the size and allocates the pixels; Unavailable when memory is short.
Status allocate_pixels(Image& image, std::uint32_t width, std::uint32_t height);

}  // namespace stoker::image::codecs
