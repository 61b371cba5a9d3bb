// decode_image on any bytes: pixels or an error, and header and pixels agree.
#include <cstdint>
#include <cstdlib>

#include "data/decode/decode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const stoker::data::DecodeLimits limits{.pixels = 1 << 20};
  static stoker::data::Image image;  // kept, as in the loader's threads
  const auto info = stoker::data::inspect_image(bytes, limits);
  if (!stoker::data::decode_image(bytes, image, limits).ok()) return 0;
  if (!info.ok() || info->width != image.width || info->height != image.height) std::abort();
  if (image.pixels.size() != std::size_t{3} * image.width * image.height) std::abort();
  return 0;
}
