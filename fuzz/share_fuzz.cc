// The record of a share on a node's own disk: what was written comes back, anything else is an error that
// names the file. Behind a checksum that fits, too, which chance would never find.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/text.h"
#include "checkpoint/local/share.h"

namespace {

void parse(std::string_view text) {
  using stoker::Code;
  const auto share = stoker::checkpoint::parse_share("fuzz", text);
  if (!share.ok()) {
    const Code code = share.status().code();
    CHECK((code == Code::corrupt || code == Code::invalid) && share.status().message().starts_with("fuzz: "));
    return;
  }
  CHECK(share->rank.value >= 0 && share->rank.value < share->head.world_size.value);
  const auto again = stoker::checkpoint::parse_share("again", stoker::checkpoint::share_text(*share));
  CHECK(again.ok() && again->marker == share->marker && again->head == share->head);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  parse(body);
  parse(stoker::format("stoker-share 1 {:08x}\n{}", stoker::crc32c(body), body));
  return 0;
}
