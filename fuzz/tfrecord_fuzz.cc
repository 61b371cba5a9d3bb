// Files of records: any bytes give samples that lie inside the file, or an error.
#include <cstring>

#include "format/tfrecord.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  stoker::formats::TfRecordReader reader(
      [bytes](std::uint64_t at, std::span<std::byte> out) -> stoker::Status {
        CHECK(at <= bytes.size() && out.size() <= bytes.size() - at);
        if (!out.empty()) std::memcpy(out.data(), bytes.data() + at, out.size());
        return {};
      },
      size, "fuzz");
  for (std::uint64_t behind = 0;;) {
    const auto record = reader.next();
    if (!record.ok() || !record->has_value()) break;
    CHECK((*record)->offset == behind && (*record)->bytes <= size - behind);
    behind += (*record)->bytes;
    for (const stoker::formats::RecordFile& file : (*record)->files)
      CHECK(file.offset >= (*record)->offset && file.offset <= behind && file.bytes <= behind - file.offset);
  }
  return 0;
}
