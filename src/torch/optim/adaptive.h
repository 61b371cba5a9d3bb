// Optimizers with a rate for each parameter or layer. AdamW is torch.optim.AdamW operation by operation: the
// same bits. PyTorch has no LAMB and no LARS: docs/commands/train.md says what these compute. Used by the
// trainer. One object belongs to one thread.
#pragma once

#include <vector>

#include "torch/optim/optimizer.h"

namespace stoker::torch {

struct AdaptiveOptions {
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  Vectors vectors = Vectors::alike;
};

/// What AdamW and LAMB have in common: means of gradients and of their squares, and a count of steps, for
/// each parameter.
class Moments : public Optimizer {
 public:
  /// Shares the parameters with the model.
  Moments(const NamedTensors& parameters, const AdaptiveOptions& options);

  void step(const Rates& rates) final;
  /// Nothing to do: it is there from the start.
  void make_state(const Rates&) final {}
  /// "state.<parameter>.step", ".exp_avg" and ".exp_avg_sq" for each parameter.
  NamedTensors state() const final;

 protected:
  struct Slot {
    NamedTensor parameter;
    at::Tensor steps;  ///< float32 without dimensions, as in PyTorch
    at::Tensor mean, square;
    bool is_spared = false;
  };
  /// One parameter's step. `correction1` and `correction2` are what the means are divided by.
  struct Scale {
    double lr, beta1, correction1, correction2;
  };
  virtual void move(Slot& slot, const at::Tensor& gradient, const Scale& scale) = 0;

  const AdaptiveOptions options_;

 private:
  std::vector<Slot> slots_;
};

class AdamW final : public Moments {
 public:
  using Moments::Moments;

 private:
  void move(Slot& slot, const at::Tensor& gradient, const Scale& scale) override;
};

/// You et al. 2020, algorithm 2, with Adam's bias correction; a layer whose norm is 0 keeps its rate.
class Lamb final : public Moments {
 public:
  using Moments::Moments;

 private:
  void move(Slot& slot, const at::Tensor& gradient, const Scale& scale) override;
};

struct LarsOptions {
  double trust = 0.001;
  double weight_decay = 0;
  Vectors vectors = Vectors::alike;
};

/// You et al. 2017: each layer's rate is trust x |weights| / (|gradient| + weight decay x |weights|),
/// momentum gathers what is already multiplied with the rate.
class Lars final : public Optimizer {
 public:
  /// Shares the parameters with the model.
  Lars(NamedTensors parameters, const LarsOptions& options);

  void step(const Rates& rates) override;
  /// Nothing to do: it is there from the start.
  void make_state(const Rates&) override {}
  /// "state.<parameter>.momentum_buffer" for each parameter.
  NamedTensors state() const override;

 private:
  const NamedTensors parameters_;
  const LarsOptions options_;
  std::vector<at::Tensor> buffers_;
};

}  // namespace stoker::torch
