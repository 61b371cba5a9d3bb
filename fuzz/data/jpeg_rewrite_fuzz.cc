// Rewrites JPEGs of any bytes: the result has the same pixels and rewrites to itself, or is an error.
#include "image/decode/decode.h"
#include "image/decode/jpeg_rewrite.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::image;
  const auto bytes = std::as_bytes(std::span(data, size));
  constexpr DecodeLimits kLimits{.pixels = 1 << 16};  // larger ones take the fuzzer's time
  static Image before, after;
  const bool is_image = decode_image(bytes, before, kLimits).ok();
  for (const RestartMarkers markers : {RestartMarkers::none, RestartMarkers::some}) {
    const auto turned = rewrite_jpeg(bytes, markers);
    if (!turned.ok()) continue;
    const auto again = rewrite_jpeg(*turned, markers);
    STOKER_CHECK(again.ok() && *again == *turned);
    STOKER_CHECK(!is_image || (decode_image(*turned, after, kLimits).ok() && before.pixels == after.pixels));
  }
  return 0;
}
