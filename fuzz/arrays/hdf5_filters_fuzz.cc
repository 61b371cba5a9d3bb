// A stored chunk with any filters: four bytes select the filters, the decoded size and the skipped ones; the
// rest is the chunk. The result has exactly that size, or is an error.
#include <cstdint>
#include <vector>

#include "arrays/hdf5/filters.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::arrays::hdf5;
  constexpr std::uint32_t kIds[] = {1, 2, 3, 32000, 32001, 32015};
  if (size < 4) return 0;
  std::vector<Filter> filters;
  for (const unsigned at : {data[0] & 7u, data[0] >> 3 & 7u, data[1] & 7u}) {
    if (at < std::size(kIds)) filters.push_back({kIds[at], "", {data[1] >> 3 & 15u}});
  }
  if (!check_filters(filters, "fuzz").ok()) return 0;
  const std::uint64_t bytes = std::uint64_t{data[2]} * 16;
  const auto stored = std::as_bytes(std::span(data, size)).subspan(4);
  const auto found = undo_filters(filters, data[3], bytes, stored, "fuzz");
  if (found.ok()) STOKER_CHECK(found->bytes().size() == bytes);
  return 0;
}
