// Turning JPEGs of any bytes: a file of the same pixels that can be turned again into the same bytes, or an
// error.
#include "data/decode/decode.h"
#include "data/pack/shard/jpeg_rewrite.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::data;
  const auto bytes = std::as_bytes(std::span(data, size));
  constexpr DecodeLimits kLimits{.pixels = 1 << 16};  // larger ones take the fuzzer's time
  static Image before, after;
  const bool is_image = decode_image(bytes, before, kLimits).ok();
  for (const RestartMarkers markers : {RestartMarkers::none, RestartMarkers::some}) {
    const auto turned = rewrite_jpeg(bytes, markers);
    if (!turned.ok()) continue;
    const auto again = rewrite_jpeg(*turned, markers);
    CHECK(again.ok() && *again == *turned);
    CHECK(!is_image || (decode_image(*turned, after, kLimits).ok() && before.pixels == after.pixels));
  }
  return 0;
}
