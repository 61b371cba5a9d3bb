#include <webp/decode.h>

#include "data/decode/codecs.h"

namespace stoker::data::codecs {
namespace {

const std::uint8_t* data_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

}  // namespace

Result<ImageInfo> inspect_webp(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  WebPBitstreamFeatures features;
  const VP8StatusCode code = WebPGetFeatures(data_of(bytes), bytes.size(), &features);
  if (code == VP8_STATUS_NOT_ENOUGH_DATA) return corrupt("WebP: ends before the image is complete");
  if (code != VP8_STATUS_OK) return corrupt("WebP: the header is damaged");
  if (features.has_animation) return invalid("WebP: an animation");
  RETURN_IF_ERROR(check_size(ImageKind::webp, static_cast<std::uint64_t>(features.width),
                             static_cast<std::uint64_t>(features.height), limits));
  return ImageInfo{.kind = ImageKind::webp,
                   .width = static_cast<std::uint32_t>(features.width),
                   .height = static_cast<std::uint32_t>(features.height),
                   .channels = features.has_alpha ? 4u : 3u};
}

Status decode_webp(std::span<const std::byte> bytes, Image& out, const DecodeLimits& limits) {
  OK_OR_RETURN(info, inspect_webp(bytes, limits));
  RETURN_IF_ERROR(make_room(out, info.width, info.height));
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) return internal("WebP: the library's version does not fit");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = out.pixels.data();
  config.output.u.RGBA.stride = static_cast<int>(3 * info.width);
  config.output.u.RGBA.size = out.pixels.size();
  switch (WebPDecode(data_of(bytes), bytes.size(), &config)) {
    case VP8_STATUS_OK:
      return Status();
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return corrupt("WebP: ends before the image is complete");
    case VP8_STATUS_OUT_OF_MEMORY:
      return unavailable("WebP: no memory for {} x {} pixels", info.width, info.height);
    default:
      return corrupt("WebP: the image data are damaged");
  }
}

}  // namespace stoker::data::codecs
