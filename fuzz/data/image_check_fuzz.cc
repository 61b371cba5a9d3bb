// Pack's image check on any bytes: an image whose header its library reads the same way, or a reason. The
// quick check accepts every decodable image. Any file has an orientation.
#include <cstdint>
#include <span>

#include "image/decode/exif.h"
#include "pack/images/image_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::dataset;
  using namespace stoker::image;
  using namespace stoker::pack;
  const auto bytes = std::as_bytes(std::span(data, size));
  const unsigned orientation = exif_orientation(bytes);
  STOKER_CHECK(orientation >= 1 && orientation <= 8);
  const ImageVerdict quick = scan_image(bytes);
  STOKER_CHECK(quick.is_good == quick.reason.empty());
  if (quick.is_good) {
    const auto info = inspect_image(bytes);
    STOKER_CHECK(info.ok());
    STOKER_CHECK(info->kind == quick.info.kind && info->width == quick.info.width &&
                 info->height == quick.info.height);
    STOKER_CHECK(info->channels == quick.info.channels && info->progressive == quick.info.progressive);
    constexpr std::uint64_t kLargest = 1u << 20;  // pixels: larger ones take the fuzzer's time
    if (std::uint64_t{info->width} * info->height > kLargest) return 0;
  }
  const ImageVerdict whole = decode_check(bytes);
  STOKER_CHECK(!whole.is_good || quick.is_good);
  STOKER_CHECK(!whole.is_good ||
               whole.channels.pixels == std::uint64_t{whole.info.width} * whole.info.height);
  return 0;
}
