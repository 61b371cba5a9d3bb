// What the child process that asks libhdf5 answers, if a damaged file made it answer anything: a description
// of a dataset that is consistent in itself, or an error.
#include <algorithm>
#include <cstdint>
#include <string>

#include "format/hdf5/describe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::formats;
  using hdf5::Description;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto found = hdf5::parse_answer(text, "fuzz.h5", 1);
  if (!found.ok()) return 0;
  const Description& about = found->front();
  CHECK(about.shape.size() <= kMostDimensions && product(about.shape, about.type.bytes));
  CHECK(about.type.bytes > 0 && about.fill.size() == about.type.bytes);
  if (about.layout == Description::Layout::chunked) {
    CHECK(!about.chunks.empty() && about.chunks.size() == about.shape.size());
    CHECK(std::count(about.chunks.begin(), about.chunks.end(), 0) == 0);
    CHECK(std::is_sorted(about.places.begin(), about.places.end(),
                         [](const auto& a, const auto& b) { return a.number < b.number; }));
  }
  if (about.member) {
    CHECK(about.member->holds() && about.member->bytes % about.type.bytes == 0);
    const auto elements = product(about.shape, about.type.bytes);
    CHECK(*elements % about.member->bytes == 0 &&
          product(std::vector{*elements / about.member->bytes}, about.member->record_bytes));
  }
  std::uint64_t end = 0;
  for (const hdf5::VirtualPart& part : about.parts) {
    CHECK(part.first_row >= end && part.rows > 0 && !about.shape.empty());
    CHECK(part.first_row <= about.shape[0] && part.rows <= about.shape[0] - part.first_row);
    end = part.first_row + part.rows;
  }
  return 0;
}
