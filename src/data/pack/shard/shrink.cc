#include "data/pack/shard/shrink.h"

#include <algorithm>

#include "data/pack/shard/encode.h"
#include "data/transform/resize.h"

namespace stoker::data {

namespace {

constexpr int kUsualQuality = 90;

std::uint32_t scaled(std::uint32_t side, std::uint32_t to, std::uint32_t from) {
  const std::uint64_t rounded = (std::uint64_t{side} * to + from / 2) / from;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, rounded));
}

}  // namespace

Result<std::optional<Shrunk>> shrink_image(std::span<const std::byte> file, const ImageInfo& info,
                                           const Shrinking& how) {
  const std::uint32_t shorter = std::min(info.width, info.height);
  const bool is_resized = how.shorter_side && shorter > *how.shorter_side;
  if (!is_resized && (!how.quality || info.kind == ImageKind::png)) return std::optional<Shrunk>();
  Image image;
  RETURN_IF_ERROR(decode_image(file, image));
  Shrunk shrunk{.bytes = {}, .width = image.width, .height = image.height};
  ImageView pixels = image.view();
  Resizer resizer;
  if (is_resized) {
    shrunk.width = scaled(image.width, *how.shorter_side, shorter);
    shrunk.height = scaled(image.height, *how.shorter_side, shorter);
    resizer.start({.part = {0, 0, image.width, image.height},
                   .width = shrunk.width,
                   .height = shrunk.height,
                   .window = {0, 0, shrunk.width, shrunk.height},
                   .filter = Filter::bilinear});
    resizer.take({.image = image.view(), .x = 0, .y = 0});
    pixels = resizer.all();
  }
  const bool is_cmyk = info.kind == ImageKind::jpeg && info.channels == 4;
  OK_OR_RETURN(bytes, encode_image(pixels, {.kind = info.kind,
                                            .quality = how.quality.value_or(kUsualQuality),
                                            .is_grey = info.channels == 1,
                                            .markers_of = is_cmyk ? std::span<const std::byte>() : file}));
  shrunk.bytes = std::move(bytes);
  return std::optional(std::move(shrunk));
}

}  // namespace stoker::data
