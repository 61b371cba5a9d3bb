// Which device a rank trains on, and moving a model there. Used by the trainer and by sessions.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "job/train_options.h"
#include "stoker/model_state.h"
#include "stoker/status.h"

namespace stoker::train {

/// The device of a rank, with the reason if it is not the one that a user would expect.
struct ChosenDevice {
  at::Device device{at::kCPU};
  std::string notice;  ///< why `auto` uses the CPU although torch is built for CUDA; empty: no surprise
};

/// The GPUs that this process can see.
struct VisibleGpus {
  int count = 0;
  Status problem;  ///< with a count of 0, the reason: no CUDA in torch, no driver, CUDA_VISIBLE_DEVICES
};
VisibleGpus visible_gpus();

/// The position of a rank on its host.
struct HostPosition {
  int local_rank = 0;
  int gpus_per_rank = 1;  ///< the ones of local rank r are r * gpus_per_rank and following
};

/// The first GPU of a rank, modulo the number of visible ones. Unavailable for `cuda` without a GPU.
Result<ChosenDevice> choose_device(job::DeviceChoice choice, HostPosition position, const VisibleGpus& gpus);

/// Moves the tensors. They keep their identity: all that share them see the new ones. With `channels_last`
/// four-dimensional tensors get that layout. Throws libtorch's exceptions.
void move_to(const ModelState& state, at::Device device, bool channels_last);

}  // namespace stoker::train
