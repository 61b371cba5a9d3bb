// Optimizers with a rate per parameter or layer. AdamW computes the same bits as torch.optim.AdamW. PyTorch
// has no LAMB and no LARS: docs/commands/train.md defines them. Used by the trainer. One object belongs to
// one thread.
#pragma once

#include <optional>
#include <vector>

#include "stoker/optimizer.h"

namespace stoker::train {

struct AdaptiveOptions {
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  BiasAndNorm bias_and_norm = BiasAndNorm::included;
  OptimizerKernels kernels = OptimizerKernels::automatic;  ///< AdamW: foreach runs per tensor
};

/// The common state of AdamW and LAMB: for each parameter the moments of its gradient and a step count.
class AdamBase : public Optimizer {
 public:
  /// Shares the parameters with the model.
  AdamBase(const NamedTensors& parameters, const AdaptiveOptions& options);

  using Optimizer::step;
  void step(const Rates& rates) override;
  /// No effect: the state exists from the start.
  void make_state(const Rates&) final {}
  /// "state.<parameter>.step", ".exp_avg" and ".exp_avg_sq" for each parameter.
  NamedTensors state() const final;

 protected:
  struct Slot {
    NamedTensor parameter;
    at::Tensor steps;  ///< float32 without dimensions, as in PyTorch
    at::Tensor mean, square;
    bool is_excluded = false;
  };
  /// The update of one parameter. `correction1` and `correction2` are the bias corrections of the moments.
  struct Scale {
    double lr, beta1, correction1, correction2;
  };
  virtual void update(Slot& slot, const at::Tensor& gradient, const Scale& scale) = 0;

  const AdaptiveOptions options_;
  const OptimizerKernels kernels_;  ///< not automatic
  std::vector<Slot> slots_;
};

class AdamW final : public AdamBase {
 public:
  using AdamBase::AdamBase;

  void step(const Rates& rates) override;
  /// False unless the kernels are fused and the momentum (beta1) is fixed.
  bool step(const DeviceRates& rates) override;

 private:
  template <typename Rate>
  void step_fused(const Rate& lr, double beta1, const std::optional<at::Tensor>& overflowed);
  void update(Slot& slot, const at::Tensor& gradient, const Scale& scale) override;
};

/// You et al. 2020, algorithm 2, with Adam's bias correction. A layer with norm 0 has a trust ratio of 1.
class Lamb final : public AdamBase {
 public:
  using AdamBase::AdamBase;

 private:
  void update(Slot& slot, const at::Tensor& gradient, const Scale& scale) override;
};

struct LarsOptions {
  double trust_coefficient = 0.001;
  double weight_decay = 0;
  BiasAndNorm bias_and_norm = BiasAndNorm::included;
};

/// You et al. 2017: each layer's rate is trust_coefficient x |weights| / (|gradient| + weight decay x
/// |weights|). The momentum buffer accumulates gradients times this rate.
class Lars final : public Optimizer {
 public:
  /// Shares the parameters with the model.
  Lars(NamedTensors parameters, const LarsOptions& options);

  using Optimizer::step;
  void step(const Rates& rates) override;
  /// No effect: the state exists from the start.
  void make_state(const Rates&) override {}
  /// "state.<parameter>.momentum_buffer" for each parameter.
  NamedTensors state() const override;

 private:
  const NamedTensors parameters_;
  const LarsOptions options_;
  std::vector<at::Tensor> buffers_;
};

}  // namespace stoker::train
