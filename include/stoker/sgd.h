// SGD with the same bits as torch.optim.SGD, given the same kernels. Used by the trainer. One object belongs
// to one thread.
#pragma once

#include <optional>
#include <vector>

#include "stoker/optimizer.h"

namespace stoker::train {

enum class Momentum { classic, nesterov };

struct SgdOptions {
  Momentum kind = Momentum::classic;
  double weight_decay = 0;
  double dampening = 0;
  BiasAndNorm bias_and_norm = BiasAndNorm::included;
  OptimizerKernels kernels = OptimizerKernels::automatic;
};

class Sgd final : public Optimizer {
 public:
  /// Shares the parameters with the model.
  Sgd(NamedTensors parameters, const SgdOptions& options);

  void step(const Rates& rates) override;
  /// False with OptimizerKernels::per_tensor, and with an `overflowed` unless they are fused.
  bool step(const DeviceRates& rates) override;
  /// Unless dampening is 0, a zero buffer differs from a missing one: the first step uses the undamped
  /// gradient.
  void make_state(const Rates& rates) override;
  /// "state.<parameter>.momentum_buffer" for each parameter that has one.
  NamedTensors state() const override;

 private:
  struct Group;
  bool decays(const at::Tensor& parameter) const;
  void step_per_tensor(const Rates& rates);
  std::vector<Group> groups(bool has_momentum);
  template <typename Factor>
  std::vector<at::Tensor> accumulate(Group& group, const Factor& momentum) const;
  template <typename Rate>
  void step_fused(Group& group, const Rate& lr, double momentum,
                  const std::optional<at::Tensor>& overflowed) const;
  void step_foreach(Group& group, const Rates& rates) const;
  void step_foreach(Group& group, const DeviceRates& rates) const;

  const NamedTensors parameters_;
  const SgdOptions options_;
  const OptimizerKernels kernels_;   ///< not automatic
  std::vector<at::Tensor> buffers_;  // undefined until the parameter's first step with momentum
};

}  // namespace stoker::train
