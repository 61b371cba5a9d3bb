// The response of the child process that queries libhdf5, as a damaged file may change it: a consistent
// description of a dataset, or an error.
#include <algorithm>
#include <cstdint>
#include <string>

#include "arrays/hdf5/describe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::codec;
  using namespace stoker::arrays;
  using hdf5::Description;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto found = hdf5::parse_response(text, "fuzz.h5", 1);
  if (!found.ok()) return 0;
  const Description& description = found->front();
  STOKER_CHECK(description.shape.size() <= kMaxDimensions &&
               product(description.shape, description.type.bytes));
  STOKER_CHECK(description.type.bytes > 0 && description.fill.size() == description.type.bytes);
  if (description.layout == Description::Layout::chunked) {
    STOKER_CHECK(!description.chunks.empty() && description.chunks.size() == description.shape.size());
    STOKER_CHECK(std::count(description.chunks.begin(), description.chunks.end(), 0) == 0);
    STOKER_CHECK(std::is_sorted(description.chunk_locations.begin(), description.chunk_locations.end(),
                                [](const auto& a, const auto& b) { return a.number < b.number; }));
  }
  if (description.member) {
    STOKER_CHECK(description.member->is_valid() && description.member->bytes % description.type.bytes == 0);
    const auto elements = product(description.shape, description.type.bytes);
    STOKER_CHECK(
        *elements % description.member->bytes == 0 &&
        product(std::vector{*elements / description.member->bytes}, description.member->record_bytes));
  }
  std::uint64_t end = 0;
  for (const hdf5::VirtualPart& part : description.parts) {
    STOKER_CHECK(part.first_row >= end && part.rows > 0 && !description.shape.empty());
    STOKER_CHECK(part.first_row <= description.shape[0] &&
                 part.rows <= description.shape[0] - part.first_row);
    end = part.first_row + part.rows;
  }
  return 0;
}
