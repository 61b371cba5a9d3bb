// Turning JPEGs of any bytes: a file that can be turned again into the same coefficients, or an error.
#include "data/pack/shard/jpeg_rewrite.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::data;
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const RestartMarkers markers : {RestartMarkers::none, RestartMarkers::some}) {
    const auto turned = rewrite_jpeg(bytes, markers);
    if (!turned.ok()) continue;
    const auto again = rewrite_jpeg(*turned, markers);
    CHECK(again.ok() && *again == *turned);
  }
  return 0;
}
