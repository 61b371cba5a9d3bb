// Parquet files of any bytes: columns of as many values or places as there are rows, or an error, in bounded
// memory; and every place lies in the file.
#include <cstring>

#include "format/parquet/parquet.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::formats;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = ParquetFile::open(
      [bytes](std::uint64_t at, std::span<std::byte> out) -> stoker::Status {
        CHECK(at <= bytes.size() && out.size() <= bytes.size() - at);
        if (!out.empty()) std::memcpy(out.data(), bytes.data() + at, out.size());
        return {};
      },
      size, "fuzz");
  if (!file.ok()) return 0;
  for (const std::string& name : file->names()) {
    const auto columns = file->read({&name, 1}, {.values = {1 << 20}});
    if (columns.ok()) CHECK((*columns)[0].values.size() == file->rows());
    const auto places = file->places(name, {.values = {1 << 20}});
    if (!places.ok()) continue;
    CHECK(places->size() == file->rows());
    for (const ParquetFile::Place& place : *places)
      CHECK(place.offset <= size && place.bytes <= size - place.offset);
  }
  return 0;
}
