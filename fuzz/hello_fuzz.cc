// What a rank of `stoker hello` tells comes over the network: any message must be taken in or be refused, and
// what was taken in must read back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rank/hello/facts.h"
#include "rank/hello/wire.h"

namespace hello = stoker::rank::hello;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto cores = hello::parse_cores(bytes); cores.ok() && *cores != *hello::parse_cores(bytes))
    std::abort();
  if (const auto ways = hello::parse_lines(bytes); ways.ok()) {
    const auto again = hello::parse_lines(hello::to_lines(*ways));
    if (!again.ok() || *again != *ways) std::abort();
  }
  stoker::net::FrameParser parser;
  parser.feed(bytes);
  hello::RankFacts facts;
  for (;;) {
    const auto next = parser.next();
    if (!next.ok() || !*next) break;
    (void)hello::take_in(**next, &facts);
    (void)hello::parse_resolved(**next);
    (void)hello::parse_way(**next);
    (void)hello::parse_flow(**next);
  }
  (void)hello::to_messages(facts);
  return 0;
}
