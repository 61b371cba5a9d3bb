// The PNG decoder behind decode_image(). Only this folder includes it. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>

#include "image/decode/decode.h"
#include "stoker/status.h"

namespace stoker::image::codecs {

Result<ImageInfo> inspect_png(std::span<const std::byte> bytes, const DecodeLimits& limits);
Status decode_png(std::span<const std::byte> bytes, Image& out, const DecodeLimits& limits);

}  // namespace stoker::image::codecs
