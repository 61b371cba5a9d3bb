#include "data/look/thumbnail.h"

#include <algorithm>

#include "data/decode/decode.h"
#include "data/pack/shard/encode.h"
#include "data/transform/resize.h"

namespace stoker::data {

Result<Thumbnail> shrink(const ImageView& image, std::uint32_t side) {
  const std::uint64_t longest = std::max(image.width, image.height);
  const auto shrunk = [&](std::uint32_t edge) {
    return longest <= side
               ? edge
               : static_cast<std::uint32_t>(std::max<std::uint64_t>(1, edge * std::uint64_t{side} / longest));
  };
  const std::uint32_t width = shrunk(image.width);
  const std::uint32_t height = shrunk(image.height);
  Resizer resizer;
  resizer.start({.part = {0, 0, image.width, image.height},
                 .width = width,
                 .height = height,
                 .window = {0, 0, width, height},
                 .filter = Filter::bilinear});
  resizer.take({.image = image, .x = 0, .y = 0});
  OK_OR_RETURN(jpeg, encode_image(resizer.all(), {.kind = ImageKind::jpeg, .quality = 85}));
  return Thumbnail{.jpeg = {reinterpret_cast<const char*>(jpeg.data()), jpeg.size()},
                   .width = image.width,
                   .height = image.height};
}

Result<Thumbnail> make_thumbnail(std::span<const std::byte> bytes, std::uint32_t side) {
  Image image;
  RETURN_IF_ERROR(decode_image(bytes, image));
  return shrink(image.view(), side);
}

}  // namespace stoker::data
