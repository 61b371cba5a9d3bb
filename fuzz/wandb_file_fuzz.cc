// Files of W&B: the same points in any cut of the file, and valid names. The CRCs are corrected, so that the
// fuzzer reaches the messages.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/hashes/crc32.h"
#include "observe/metrics/wandb_file.h"

namespace {

// Records of at most 255 bytes, each after a byte with its length.
std::string framed(std::string_view text) {
  std::string file("\x3a\x57\x26\x42\xe1\xbe\x00", 7);
  while (!text.empty() && file.size() < 30'000) {
    const std::size_t length =
        std::min<std::size_t>(static_cast<unsigned char>(text.front()), text.size() - 1);
    const std::string checked = "\x01" + std::string(text.substr(1, length));
    const std::uint32_t crc = stoker::crc32(std::as_bytes(std::span(checked)));
    file.append(reinterpret_cast<const char*>(&crc), sizeof crc);
    file += static_cast<char>(length);
    file += '\0';
    file += checked;
    text.remove_prefix(1 + length);
  }
  return file;
}

std::string read(std::string_view file, std::size_t piece) {
  std::string points;
  stoker::observe::WandbFileReader reader;
  const auto sink = [&](const stoker::record::PointLine& point) {
    STOKER_CHECK(stoker::record::check_metric_name(point.metric).ok() && point.step.value_or(0) >= 0);
    stoker::record::append_point(point, &points);
  };
  for (std::size_t at = 0; at < file.size(); at += piece) (void)reader.feed(file.substr(at, piece), sink);
  return points;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)read(text, 7);
  const std::string file = framed(text);
  STOKER_CHECK(read(file, 7) == read(file, file.size() + 1));
  return 0;
}
