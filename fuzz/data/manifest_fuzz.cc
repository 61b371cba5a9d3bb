// parse_manifest on any bytes: rejected, or a manifest that survives a round trip.
#include <cstdint>
#include <cstdlib>

#include "dataset/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::dataset;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = parse_manifest(text, "fuzz");
  if (!manifest.ok()) return 0;
  const auto again = parse_manifest(to_json(*manifest), "fuzz");
  if (!again.ok() || !(*again == *manifest)) std::abort();
  return 0;
}
