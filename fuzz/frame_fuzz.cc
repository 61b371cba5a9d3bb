// Frames come from any client of the run's port: any bytes are parsed or rejected, and a parsed message
// survives a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using stoker::net::FrameParser;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  FrameParser parser;
  parser.feed(bytes);
  for (;;) {
    const auto next = parser.next();
    if (!next.ok() || !*next) return 0;
    FrameParser again;
    again.feed(encode(**next));
    const auto same = again.next();
    if (!same.ok() || !*same || !(**same == **next)) std::abort();
  }
}
