// decode_image on any bytes: pixels or an error, and header and pixels agree. Decoder on a region of the
// image, chosen by its last bytes: pixels that cover the region and equal the whole image's, or an error.
// JPEGs also at reduced size.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "image/decode/decode.h"

namespace {

using stoker::image::Image;
using stoker::image::ImageRegion;

// Uses the last bytes: an image can lose them and stay an image.
ImageRegion part_of(const std::uint8_t* data, std::size_t size, std::uint32_t width, std::uint32_t height) {
  const auto pick = [&](std::size_t i, std::uint32_t n) {
    return size > i ? data[size - 1 - i] * n / 256 : 0;
  };
  ImageRegion part;
  part.width = 1 + pick(0, width);
  part.height = 1 + pick(1, height);
  part.x = pick(2, width - part.width + 1);
  part.y = pick(3, height - part.height + 1);
  return part;
}

bool holds(const ImageRegion& got, const ImageRegion& part) {
  return got.x <= part.x && got.y <= part.y && got.x + got.width >= part.x + part.width &&
         got.y + got.height >= part.y + part.height;
}

bool same(const Image& whole, const Image& held, const ImageRegion& got, const ImageRegion& part) {
  for (std::uint32_t y = part.y; y < part.y + part.height; ++y) {
    const auto* a = whole.pixels.data() + 3 * (std::size_t{y} * whole.width + part.x);
    const auto* b = held.pixels.data() + 3 * (std::size_t{y - got.y} * held.width + part.x - got.x);
    if (!std::equal(a, a + std::size_t{3} * part.width, b)) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const stoker::image::DecodeLimits limits{.pixels = 1 << 20};
  static Image image, held;  // kept, as in the loader's threads
  static stoker::image::Decoder decoder;
  const auto info = stoker::image::inspect_image(bytes, limits);
  const bool is_whole = stoker::image::decode_image(bytes, image, limits).ok();
  if (is_whole) {
    if (!info.ok() || info->width != image.width || info->height != image.height) std::abort();
    if (image.pixels.size() != std::size_t{3} * image.width * image.height) std::abort();
  }
  const auto opened = decoder.open(bytes, limits);
  if (!opened.ok()) return 0;
  ImageRegion got;
  const ImageRegion part = part_of(data, size, opened->width, opened->height);
  if (decoder.can_reduce() && size > 5) {
    const std::uint32_t by = 2u << data[size - 5] % 3;
    const ImageRegion small =
        part_of(data, size, (opened->width + by - 1) / by, (opened->height + by - 1) / by);
    if (decoder.decode(small, held, got, by).ok() && !holds(got, small)) std::abort();
    if (!decoder.open(bytes, limits).ok()) std::abort();
  }
  if (!decoder.decode(part, held, got).ok()) return 0;
  if (!holds(got, part) || held.width != got.width || held.height != got.height) std::abort();
  if (held.pixels.size() != std::size_t{3} * got.width * got.height) std::abort();
  if (is_whole && !same(image, held, got, part)) std::abort();
  return 0;
}
