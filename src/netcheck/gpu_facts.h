// Which GPU a rank would use, and how the GPUs of its node are connected, by NVML. Used by the workers of a
// `stoker hello`. Functions without state.
#pragma once

#include "netcheck/report.h"
#include "observe/gpu.h"

namespace stoker::netcheck {

/// Fills in the fields about GPUs, after node, local_rank and visible_gpus. Like a training, the rank uses
/// the first of its `gpus_per_rank`. Names of GPUs are added only if nvidia-smi listed none. Nothing without
/// a driver.
void add_gpu_facts(const observe::GpuReader& reader, int gpus_per_rank, RankFacts* facts);

}  // namespace stoker::netcheck
