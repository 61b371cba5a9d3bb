// What every optimizer of the trainer can do. Used by the trainer. One object belongs to one thread.
#pragma once

#include "torch/named_tensor.h"
#include "torch/optim/schedule.h"

namespace stoker::torch {

/// Whether parameters of one dimension (biases, scales of norms) are treated as the others are.
enum class Vectors {
  alike,
  spared,  ///< no weight decay, and no rate of their own under LAMB and LARS
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Moves every parameter that has a gradient. Gradients stay; drop them with DataParallel::zero_grad().
  /// Throws what libtorch throws.
  virtual void step(const Rates& rates) = 0;

  /// Makes all that steps with such rates keep, as zeros, so that a checkpoint can be read into it.
  virtual void make_state(const Rates& rates) = 0;
  /// "state.<parameter>.<what>", as PyTorch's state-dict utilities flatten it; shared with the optimizer.
  virtual NamedTensors state() const = 0;
};

}  // namespace stoker::torch
