// TensorBoard event files: the same points in any cut of the file, and valid names. The CRCs are corrected,
// so that the fuzzer reaches the messages.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "found_points.h"
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_in_any_cut<stoker::observe::EventFileReader>(text, framed(text));
  return 0;
}
