// Interface of the trainer's optimizers. One object belongs to one thread.
#pragma once

#include "stoker/model_state.h"
#include "stoker/schedule.h"

namespace stoker::train {

/// Whether one-dimensional parameters (biases, norm weights) have weight decay and trust ratios.
enum class BiasAndNorm {
  included,
  excluded,  ///< no weight decay, and a trust ratio of 1 under LAMB and LARS
};

/// How an optimizer goes over its tensors. Results differ in rounding only.
enum class OptimizerKernels {
  automatic,   ///< per_tensor on CPUs, fused on GPUs
  per_tensor,  ///< one after the other
  foreach,     ///< each operation once for all tensors: as torch.optim with foreach=True
  fused,       ///< one operation for all tensors: as torch.optim with fused=True
};

/// Values of a step that its kernels read on the device when they run, so that a captured step can be
/// replayed with others. float32, without dimensions.
struct DeviceRates {
  at::Tensor lr;
  at::Tensor momentum;  ///< undefined: it is `fixed_momentum` in every step
  double fixed_momentum = 0;
  at::Tensor overflowed;  ///< GradScaler::overflowed(): a step has no effect if it is not 0; undefined: none
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Updates every parameter that has a gradient. Keeps gradients: call DataParallel::zero_grad(). Throws
  /// libtorch's exceptions.
  virtual void step(const Rates& rates) = 0;
  /// The same with values on the device, without waiting for it. False: this optimizer, or its kernels,
  /// cannot do that, and nothing has changed.
  virtual bool step(const DeviceRates&) { return false; }

  /// Creates the state of steps with these rates, as zeros, so that a checkpoint can be loaded into it.
  virtual void make_state(const Rates& rates) = 0;
  /// "state.<parameter>.<name>", flattened as PyTorch's state-dict utilities do; shared with the optimizer.
  virtual NamedTensors state() const = 0;
};

}  // namespace stoker::train
