// Messages of `stoker hello` ranks come from the network: any message is parsed or rejected, and a parsed one
// survives a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "netcheck/facts.h"
#include "netcheck/wire.h"

namespace hello = stoker::netcheck;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto cores = stoker::netcheck::parse_cores(bytes);
      cores.ok() && *cores != *stoker::netcheck::parse_cores(bytes))
    std::abort();
  if (const auto ways = stoker::netcheck::parse_targets(bytes); ways.ok()) {
    const auto again = stoker::netcheck::parse_targets(stoker::netcheck::to_lines(*ways));
    if (!again.ok() || *again != *ways) std::abort();
  }
  stoker::net::FrameParser parser;
  parser.feed(bytes);
  stoker::netcheck::RankFacts facts;
  for (;;) {
    const auto next = parser.next();
    if (!next.ok() || !*next) break;
    (void)stoker::netcheck::parse_fact(**next, &facts);
    (void)stoker::netcheck::parse_resolved(**next);
    (void)stoker::netcheck::parse_way(**next);
    (void)stoker::netcheck::parse_flow(**next);
  }
  (void)stoker::netcheck::to_messages(facts);
  return 0;
}
