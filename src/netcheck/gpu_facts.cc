#include "netcheck/gpu_facts.h"

#include <algorithm>

#include "rank/gpu_binding.h"

namespace stoker::netcheck {
namespace {

using observe::GpuDevice;

bool is_id(std::string_view entry) { return entry.starts_with("GPU-") || entry.starts_with("MIG-"); }

// The number of the GPU that an entry of CUDA_VISIBLE_DEVICES names; -1 without one. CUDA accepts the
// beginning of an id.
int find_gpu(std::string_view entry, const std::vector<GpuDevice>& gpus) {
  std::int64_t number = 0;
  if (parse_number(entry, &number))
    return number < static_cast<std::int64_t>(gpus.size()) ? static_cast<int>(number) : -1;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const bool is_part =
        std::find(gpus[i].mig_uuids.begin(), gpus[i].mig_uuids.end(), entry) != gpus[i].mig_uuids.end();
    if (is_part || (is_id(entry) && gpus[i].uuid.starts_with(entry))) return static_cast<int>(i);
  }
  return -1;
}

std::vector<GpuLink> links_of(const observe::GpuTopology& topology) {
  std::vector<GpuLink> links;
  for (const observe::GpuPair& pair : topology.pairs) {
    const int least = std::min(topology.ports[static_cast<std::size_t>(pair.first)].nvlinks,
                               topology.ports[static_cast<std::size_t>(pair.second)].nvlinks);
    links.push_back({pair.first, pair.second, pair.has_nvlink ? least : 0, pair.path, pair.has_peer_access});
  }
  return links;
}

}  // namespace

void add_gpu_facts(const observe::GpuReader& reader, int gpus_per_rank, RankFacts* facts) {
  const std::vector<GpuDevice>& gpus = reader.devices();
  if (gpus.empty()) return;
  if (facts->gpus.empty() && facts->gpu_problem.empty()) {
    for (const GpuDevice& gpu : gpus) facts->gpus.push_back(printable(gpu.name));
  }
  for (const std::string& entry : rank::visible_entries(facts->visible_gpus.value_or(""))) {
    if (is_id(entry) && find_gpu(entry, gpus) < 0 && facts->unknown_gpu.empty()) facts->unknown_gpu = entry;
  }
  const observe::GpuTopology topology = reader.topology();
  if (facts->local_rank == 0) facts->gpu_links = links_of(topology);
  const std::vector<std::string> entries = rank::usable_gpus(facts->visible_gpus, gpus);
  if (entries.empty()) return;
  const auto first =
      static_cast<std::size_t>(facts->local_rank) * static_cast<std::size_t>(std::max(1, gpus_per_rank));
  const std::string& entry = entries[first % entries.size()];
  facts->gpu = find_gpu(entry, gpus);
  if (facts->gpu < 0) return;
  const auto own = static_cast<std::size_t>(facts->gpu);
  facts->gpu_uuid = entry.starts_with("MIG-") ? entry : gpus[own].uuid;
  const observe::GpuPort& port = topology.ports[own];
  facts->gpu_bytes_per_s = port.nvlinks > 0 ? port.nvlink_bytes_per_s : port.pcie_bytes_per_s;
}

}  // namespace stoker::netcheck
