// Node lists and task counts come from the environment: any text must expand within its bound or be rejected.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "slurm/node_list.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto nodes = stoker::slurm::expand_node_list(text); nodes.ok()) {
    if (nodes->size() > stoker::slurm::kMaxNodes) std::abort();
  }
  if (const auto counts = stoker::slurm::expand_per_node(text); counts.ok()) {
    if (counts->size() > stoker::slurm::kMaxNodes) std::abort();
  }
  return 0;
}
