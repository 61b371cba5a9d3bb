// Stochastic gradient descent as torch.optim.SGD does it, operation by operation: the same bits. Used by the
// trainer. One object belongs to one thread.
#pragma once

#include <vector>

#include "torch/optim/optimizer.h"

namespace stoker::torch {

enum class Momentum { classic, nesterov };

struct SgdOptions {
  Momentum kind = Momentum::classic;
  double weight_decay = 0;
  double dampening = 0;
  Vectors vectors = Vectors::alike;
};

class Sgd final : public Optimizer {
 public:
  /// Shares the parameters with the model.
  Sgd(NamedTensors parameters, const SgdOptions& options);

  void step(const Rates& rates) override;
  /// A buffer of zeros is not the same as none unless the dampening is 0: the first step takes the gradient
  /// undamped.
  void make_state(const Rates& rates) override;
  /// "state.<parameter>.momentum_buffer" for each parameter that has one.
  NamedTensors state() const override;

 private:
  const NamedTensors parameters_;
  const SgdOptions options_;
  std::vector<at::Tensor> buffers_;  // undefined until the parameter's first step with momentum
};

}  // namespace stoker::torch
