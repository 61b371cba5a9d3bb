// A lab's inputs: lab.json, environments of processes, rates and shares. Nothing crashes, and no rate or
// share is one that `tc` would misread.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lab/fault/fault.h"
#include "lab/fault/ranks.h"
#include "lab/lab.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::lab;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto lab = parse(text, "/labs/x")) {
    for (const LabNode& node : lab->nodes) (void)node_command(*lab, node, {"true"});
    (void)find_node(*lab, text);
  }
  (void)fault::parse_rank_identity(text);
  if (const auto rate = fault::parse_rate(text)) {
    if (fault::rate_text(*rate).empty()) __builtin_trap();
  }
  if (const auto loss = fault::parse_loss(text); loss && !(*loss > 0 && *loss <= 1)) __builtin_trap();
  return 0;
}
