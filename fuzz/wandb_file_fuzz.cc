// Files of W&B: the same points in any cut of the file, and valid names. The CRCs are corrected, so that the
// fuzzer reaches the messages.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/hashes/crc32.h"
#include "found_points.h"
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_in_any_cut<stoker::observe::WandbFileReader>(text, framed(text));
  return 0;
}
