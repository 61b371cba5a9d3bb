// EMA of a model's weights, which often validates better than the weights. Computes the same bits as
// torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn. Used by the trainer. One object belongs to
// one thread.
#pragma once

#include <vector>

#include "stoker/model_state.h"

namespace stoker::train {

class Ema {
 public:
  /// Shares the parameters with the model.
  Ema(NamedTensors parameters, double decay);

  /// Updates the EMA after optimizer step `step`, from 1: the first step copies the weights, later ones add
  /// them with factor 1 - decay.
  void update(std::int64_t step);
  /// "ema.<parameter>"; shared with this object.
  NamedTensors state() const;

  /// While a Scope exists, the model's parameters hold the EMA.
  class Scope {
   public:
    explicit Scope(Ema& ema);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Ema& ema_;
    std::vector<at::Tensor> own_;
  };

 private:
  const NamedTensors parameters_;
  const double decay_;
  std::vector<at::Tensor> means_;
};

}  // namespace stoker::train
