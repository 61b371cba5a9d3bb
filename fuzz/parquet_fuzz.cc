// Parquet files of any bytes: columns of as many values as there are rows, or an error, in bounded memory.
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
  }
  return 0;
}
