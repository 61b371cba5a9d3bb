// Writes the GPUs of a node and their errors to the events of a run. Used by NodeSampler. Functions without
// state; the writer belongs to one thread.
#pragma once

#include <string>
#include <vector>

#include "observe/gpu.h"
#include "record/events.h"

namespace stoker::rank {

/// A node of a run.
struct SampledNode {
  int number = 0;
  std::string host;
};

/// One `gpu_found` event per GPU.
void record_gpus(const std::vector<observe::GpuDevice>& gpus, const SampledNode& node,
                 record::EventWriter& events);

/// One `gpu_xid` event per error of these GPUs. Returns a line for the user per error.
std::vector<std::string> record_gpu_faults(const std::vector<observe::GpuXid>& xids,
                                           const std::vector<observe::GpuDevice>& gpus,
                                           const SampledNode& node, record::EventWriter& events);

}  // namespace stoker::rank
