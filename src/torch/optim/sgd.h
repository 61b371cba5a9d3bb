// Stochastic gradient descent as torch.optim.SGD does it, operation by operation: the same bits. Used by the
// trainer. One object belongs to one thread.
#pragma once

#include <vector>

#include "torch/named_tensor.h"
#include "torch/optim/schedule.h"

namespace stoker::torch {

enum class Momentum { classic, nesterov };

struct SgdOptions {
  Momentum kind = Momentum::classic;
  double weight_decay = 0;
  double dampening = 0;
};

class Sgd {
 public:
  /// Shares the parameters with the model.
  Sgd(NamedTensors parameters, const SgdOptions& options);

  /// Moves every parameter that has a gradient. Gradients stay; drop them with DataParallel::zero_grad().
  /// Throws what libtorch throws.
  void step(const Rates& rates);

  /// Makes all momentum buffers now, as zeros, so that a checkpoint can be read into them. A buffer of zeros
  /// is not the same as none unless the dampening is 0: the first step takes the gradient undamped.
  void make_buffers();
  /// "state.<parameter>.momentum_buffer" for each parameter that has one; shared with the optimizer.
  NamedTensors state() const;

 private:
  const NamedTensors parameters_;
  const SgdOptions options_;
  std::vector<at::Tensor> buffers_;  // undefined until the parameter's first step with momentum
};

}  // namespace stoker::torch
