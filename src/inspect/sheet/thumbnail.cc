#include "inspect/sheet/thumbnail.h"

#include <algorithm>

#include "image/decode/decode.h"
#include "image/encode.h"
#include "image/transform/resize.h"

namespace stoker::inspect {

Result<Thumbnail> encode_thumbnail(const image::ImageView& image, std::uint32_t side) {
  const std::uint64_t longest = std::max(image.width, image.height);
  const auto shrunk = [&](std::uint32_t edge) {
    return longest <= side
               ? edge
               : static_cast<std::uint32_t>(std::max<std::uint64_t>(1, edge * std::uint64_t{side} / longest));
  };
  const std::uint32_t width = shrunk(image.width);
  const std::uint32_t height = shrunk(image.height);
  image::Resizer resizer;
  resizer.start({.part = {0, 0, image.width, image.height},
                 .width = width,
                 .height = height,
                 .window = {0, 0, width, height},
                 .filter = image::ResizeFilter::bilinear});
  resizer.set_source({.image = image, .x = 0, .y = 0});
  STOKER_ASSIGN_OR_RETURN(jpeg, encode_image(resizer.all(), {.kind = image::ImageKind::jpeg, .quality = 85}));
  return Thumbnail{.jpeg = {reinterpret_cast<const char*>(jpeg.data()), jpeg.size()},
                   .width = image.width,
                   .height = image.height};
}

Result<Thumbnail> make_thumbnail(std::span<const std::byte> bytes, std::uint32_t side) {
  image::Image image;
  STOKER_RETURN_IF_ERROR(decode_image(bytes, image));
  return encode_thumbnail(image.view(), side);
}

}  // namespace stoker::inspect
