// The record of a share on a node's local disk: a valid one survives a round trip, anything else is an error
// that names the file. Also behind a valid checksum, which a fuzzer would not find.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "checkpoint/save/share.h"
#include "stoker/text.h"

namespace {

void parse(std::string_view text) {
  using stoker::Code;
  const auto share = stoker::checkpoint::parse_share("fuzz", text);
  if (!share.ok()) {
    const Code code = share.status().code();
    STOKER_CHECK((code == Code::corrupt || code == Code::invalid) &&
                 share.status().message().starts_with("fuzz: "));
    return;
  }
  STOKER_CHECK(share->rank.value >= 0 && share->rank.value < share->head.world_size.value);
  const auto again = stoker::checkpoint::parse_share("again", stoker::checkpoint::share_text(*share));
  STOKER_CHECK(again.ok() && again->marker == share->marker && again->head == share->head);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  parse(body);
  parse(stoker::format("stoker-share 1 {:08x}\n{}", stoker::crc32c(body), body));
  return 0;
}
