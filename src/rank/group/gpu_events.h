// Writes the GPUs of this node and their errors to the events of a run. Used by RankGroup. Functions without
// state; the writer belongs to one thread.
#pragma once

#include <string>
#include <vector>

#include "observe/gpu.h"
#include "record/events.h"

namespace stoker::rank {

/// One `gpu_found` event per GPU of node 0, which is `host`.
void record_gpus(const std::vector<observe::GpuDevice>& gpus, const std::string& host,
                 record::EventWriter& events);

/// One `gpu_xid` event per error of these GPUs. Returns a line for the user per error.
std::vector<std::string> record_gpu_faults(const std::vector<observe::GpuXid>& xids,
                                           const std::vector<observe::GpuDevice>& gpus,
                                           const std::string& host, record::EventWriter& events);

}  // namespace stoker::rank
