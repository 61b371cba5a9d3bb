// A store's metadata: zarr.json, and behind the first zero byte .zmetadata. Every node that is listed lies in
// the store, and its metadata is read or is an error.
#include <cstdint>
#include <string_view>

#include "base/file.h"
#include "format/zarr/store.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  using namespace stoker::formats;
  static const TempDirectory store{Path("/dev/shm")};
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  CHECK(write_file(store / "zarr.json", input.substr(0, end)).ok());
  CHECK(write_file(store / ".zmetadata", input.substr(std::min(end + 1, size))).ok());
  const auto nodes = list_zarr(store.path());
  if (!nodes.ok()) return 0;
  std::size_t read = 0;
  for (const ZarrNode& node : *nodes) {
    CHECK(unsafe_node(node.path).empty());
    if (++read > 16) break;
    const auto metadata = read_zarr_metadata(store.path(), node.path);
    if (metadata.ok()) CHECK(check_zarr_metadata(*metadata, "fuzz").ok());
  }
  return 0;
}
