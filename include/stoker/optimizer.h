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

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Updates every parameter that has a gradient. Keeps gradients: call DataParallel::zero_grad(). Throws
  /// libtorch's exceptions.
  virtual void step(const Rates& rates) = 0;

  /// Creates the state of steps with these rates, as zeros, so that a checkpoint can be loaded into it.
  virtual void make_state(const Rates& rates) = 0;
  /// "state.<parameter>.<name>", flattened as PyTorch's state-dict utilities do; shared with the optimizer.
  virtual NamedTensors state() const = 0;
};

}  // namespace stoker::train
