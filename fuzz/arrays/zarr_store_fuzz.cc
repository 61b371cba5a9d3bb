// A store's metadata: zarr.json, and .zmetadata after the first zero byte. Every listed node is in the store,
// and its metadata is parsed or is an error.
#include <cstdint>
#include <string_view>

#include "arrays/zarr/store.h"
#include "base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  using namespace stoker::codec;
  using namespace stoker::arrays;
  static const TempDirectory store{Path("/dev/shm")};
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  STOKER_CHECK(write_file(store / "zarr.json", input.substr(0, end)).ok());
  STOKER_CHECK(write_file(store / ".zmetadata", input.substr(std::min(end + 1, size))).ok());
  const auto nodes = list_zarr(store.path());
  if (!nodes.ok()) return 0;
  std::size_t read = 0;
  for (const ZarrNode& node : *nodes) {
    STOKER_CHECK(unsafe_node(node.path).empty());
    if (++read > 16) break;
    const auto metadata = read_zarr_metadata(store.path(), node.path);
    if (metadata.ok()) STOKER_CHECK(check_zarr_metadata(*metadata, "fuzz").ok());
  }
  return 0;
}
