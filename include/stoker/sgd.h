// SGD with the same bits as torch.optim.SGD. Used by the trainer. One object belongs to one thread.
#pragma once

#include <vector>

#include "stoker/optimizer.h"

namespace stoker::train {

enum class Momentum { classic, nesterov };

struct SgdOptions {
  Momentum kind = Momentum::classic;
  double weight_decay = 0;
  double dampening = 0;
  BiasAndNorm bias_and_norm = BiasAndNorm::included;
};

class Sgd final : public Optimizer {
 public:
  /// Shares the parameters with the model.
  Sgd(NamedTensors parameters, const SgdOptions& options);

  void step(const Rates& rates) override;
  /// Unless dampening is 0, a zero buffer differs from a missing one: the first step uses the undamped
  /// gradient.
  void make_state(const Rates& rates) override;
  /// "state.<parameter>.momentum_buffer" for each parameter that has one.
  NamedTensors state() const override;

 private:
  const NamedTensors parameters_;
  const SgdOptions options_;
  std::vector<at::Tensor> buffers_;  // undefined until the parameter's first step with momentum
};

}  // namespace stoker::train
