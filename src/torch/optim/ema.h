// A running mean of a model's weights, which often validates better than the weights themselves. As
// torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn: the same bits. Used by the trainer. One
// object belongs to one thread.
#pragma once

#include <vector>

#include "torch/named_tensor.h"

namespace stoker::torch {

class Ema {
 public:
  /// Shares the parameters with the model.
  Ema(NamedTensors parameters, double decay);

  /// Takes in the weights after optimizer step `step`, from 1: the first ones as they are, later ones with
  /// 1 - decay.
  void update(std::int64_t step);
  /// "ema.<parameter>"; shared with this object.
  NamedTensors state() const;

  /// While one lives, the model's parameters hold the mean.
  class Lent {
   public:
    explicit Lent(Ema& ema);
    ~Lent();
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

   private:
    Ema& ema_;
    std::vector<at::Tensor> own_;
  };

 private:
  const NamedTensors parameters_;
  const double decay_;
  std::vector<at::Tensor> means_;
};

}  // namespace stoker::torch
