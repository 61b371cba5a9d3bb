// TensorBoard event files: the same points in any cut of the file, and valid names. The CRCs are corrected,
// so that the fuzzer reaches the messages.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "observe/metrics/event_file.h"

namespace {

std::string crc_of(std::string_view bytes) {
  const std::uint32_t crc = stoker::crc32c(bytes);
  const std::uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  return {reinterpret_cast<const char*>(&masked), sizeof masked};
}

// Records of at most 255 bytes, each after a byte with its length.
std::string framed(std::string_view text) {
  std::string file;
  while (!text.empty()) {
    const std::uint64_t length =
        std::min<std::uint64_t>(static_cast<unsigned char>(text.front()), text.size() - 1);
    const std::string head(reinterpret_cast<const char*>(&length), sizeof length);
    const std::string event(text.substr(1, length));
    file += head + crc_of(head) + event + crc_of(event);
    text.remove_prefix(1 + length);
  }
  return file;
}

std::string read(std::string_view file, std::size_t piece) {
  std::string points;
  stoker::observe::EventFileReader reader;
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
