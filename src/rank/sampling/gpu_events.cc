#include "rank/sampling/gpu_events.h"

#include "observe/gpu_health.h"
#include "record/run_events.h"

namespace stoker::rank {

// A full disk loses these events, like all others, and the run continues.
void record_gpus(const std::vector<observe::GpuDevice>& gpus, const SampledNode& node,
                 record::EventWriter& events) {
  int number = 0;
  for (const observe::GpuDevice& gpu : gpus) {
    (void)write_event(events, record::GpuFound{.node = node.number,
                                               .host = node.host,
                                               .gpu = number++,
                                               .name = gpu.name,
                                               .uuid = gpu.uuid,
                                               .pci_bus_id = gpu.pci_bus_id,
                                               .mig_devices = static_cast<int>(gpu.mig_uuids.size())});
  }
}

std::vector<std::string> record_gpu_faults(const std::vector<observe::GpuXid>& xids,
                                           const std::vector<observe::GpuDevice>& gpus,
                                           const SampledNode& node, record::EventWriter& events) {
  std::vector<std::string> lines;
  for (const observe::GpuXid& xid : xids) {
    const std::string& pci = gpus.at(static_cast<std::size_t>(xid.gpu)).pci_bus_id;
    (void)write_event(
        events,
        record::GpuFault{
            .node = node.number, .host = node.host, .gpu = xid.gpu, .pci_bus_id = pci, .code = xid.code});
    lines.push_back(observe::xid_text(xid.gpu, node.host, pci, xid.code));
  }
  return lines;
}

}  // namespace stoker::rank
