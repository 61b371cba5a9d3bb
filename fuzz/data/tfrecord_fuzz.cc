// TFRecord files: any bytes give samples inside the file, or an error. The same bytes also as a framed
// record, because a fuzzer does not find CRCs.
#include <cstring>
#include <string>

#include "archive/tfrecord.h"
#include "base/hash.h"

namespace {

void read_all(std::span<const std::byte> bytes) {
  stoker::archive::TfRecordReader reader(
      [bytes](std::uint64_t at, std::span<std::byte> out) -> stoker::Status {
        STOKER_CHECK(at <= bytes.size() && out.size() <= bytes.size() - at);
        if (!out.empty()) std::memcpy(out.data(), bytes.data() + at, out.size());
        return {};
      },
      bytes.size(), "fuzz");
  for (std::uint64_t behind = 0;;) {
    const auto record = reader.next();
    if (!record.ok() || !record->has_value()) break;
    STOKER_CHECK((*record)->offset == behind && (*record)->bytes <= bytes.size() - behind);
    behind += (*record)->bytes;
    for (const stoker::archive::RecordFile& file : (*record)->files)
      STOKER_CHECK(file.offset >= (*record)->offset && file.offset <= behind &&
                   file.bytes <= behind - file.offset);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_all(std::as_bytes(std::span(data, size)));
  const std::uint64_t length = size;
  std::string framed(reinterpret_cast<const char*>(&length), sizeof length);
  const std::uint32_t crc = stoker::masked_crc(stoker::crc32c(framed));
  framed.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  framed.append(reinterpret_cast<const char*>(data), size);
  framed.append("crc.");
  read_all(std::as_bytes(std::span(framed)));
  return 0;
}
