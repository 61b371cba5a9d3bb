#include "pack/images/reencode.h"

#include <algorithm>

#include "image/encode.h"
#include "image/transform/resize.h"

namespace stoker::pack {

namespace {

constexpr int kUsualQuality = 90;

std::uint32_t scaled(std::uint32_t side, std::uint32_t to, std::uint32_t from) {
  const std::uint64_t rounded = (std::uint64_t{side} * to + from / 2) / from;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, rounded));
}

}  // namespace

Result<std::optional<ReencodedImage>> reencode_image(std::span<const std::byte> file,
                                                     const image::ImageInfo& info,
                                                     const ReencodeOptions& how) {
  const std::uint32_t shorter = std::min(info.width, info.height);
  const bool is_resized = how.shorter_side && shorter > *how.shorter_side;
  if (!is_resized && (!how.quality || info.kind == image::ImageKind::png))
    return std::optional<ReencodedImage>();
  image::Image image;
  STOKER_RETURN_IF_ERROR(decode_image(file, image));
  ReencodedImage reencoded{.bytes = {}, .width = image.width, .height = image.height};
  image::ImageView pixels = image.view();
  image::Resizer resizer;
  if (is_resized) {
    reencoded.width = scaled(image.width, *how.shorter_side, shorter);
    reencoded.height = scaled(image.height, *how.shorter_side, shorter);
    resizer.start({.part = {0, 0, image.width, image.height},
                   .width = reencoded.width,
                   .height = reencoded.height,
                   .window = {0, 0, reencoded.width, reencoded.height},
                   .filter = image::ResizeFilter::bilinear});
    resizer.set_source({.image = image.view(), .x = 0, .y = 0});
    pixels = resizer.all();
  }
  const bool is_cmyk = info.kind == image::ImageKind::jpeg && info.channels == 4;
  STOKER_ASSIGN_OR_RETURN(
      bytes, encode_image(pixels, {.kind = info.kind,
                                   .quality = how.quality.value_or(kUsualQuality),
                                   .is_grey = info.channels == 1,
                                   .metadata_from = is_cmyk ? std::span<const std::byte>() : file}));
  reencoded.bytes = std::move(bytes);
  return std::optional(std::move(reencoded));
}

}  // namespace stoker::pack
