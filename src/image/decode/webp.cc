#include "image/decode/webp.h"

#include <webp/decode.h>

#include "image/decode/decode_internal.h"

namespace stoker::image::codecs {
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
  if (features.has_animation) return invalid("WebP: animations are not supported");
  STOKER_RETURN_IF_ERROR(check_size(ImageKind::webp, static_cast<std::uint64_t>(features.width),
                                    static_cast<std::uint64_t>(features.height), limits));
  return ImageInfo{.kind = ImageKind::webp,
                   .width = static_cast<std::uint32_t>(features.width),
                   .height = static_cast<std::uint32_t>(features.height),
                   .channels = features.has_alpha ? 4u : 3u};
}

Status decode_webp(std::span<const std::byte> bytes, Image& out, const DecodeLimits& limits) {
  STOKER_ASSIGN_OR_RETURN(info, inspect_webp(bytes, limits));
  STOKER_RETURN_IF_ERROR(allocate_pixels(out, info.width, info.height));
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) return internal("WebP: incompatible version of libwebp");
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
      return corrupt("WebP: the image data is damaged");
  }
}

}  // namespace stoker::image::codecs
