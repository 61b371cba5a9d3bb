// Which kernels an optimizer uses. Used by the optimizers of this folder. No state.
#pragma once

#include "stoker/optimizer.h"

namespace stoker::train {

/// The kernels for these parameters in place of OptimizerKernels::automatic.
inline OptimizerKernels chosen_kernels(OptimizerKernels kernels, const NamedTensors& parameters) {
  if (kernels != OptimizerKernels::automatic) return kernels;
  const bool is_on_gpu = !parameters.empty() && !parameters.front().tensor.is_cpu();
  return is_on_gpu ? OptimizerKernels::fused : OptimizerKernels::per_tensor;
}

}  // namespace stoker::train
