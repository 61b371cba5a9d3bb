// What is done to gradients between the backward pass and the optimizer: clipping as
// torch.nn.utils.clip_grad_norm_ does it, and the scaling that lets float16 hold them, as
// torch.amp.GradScaler does it; operation by operation, the same bits. Used by the trainer. One object
// belongs to one thread.
#pragma once

#include <cstdint>

#include "torch/named_tensor.h"

namespace stoker::torch {

/// The 2-norm over all gradients; where it is above `most` they are scaled down to it, in place. Parameters
/// without a gradient do not count. After averaging over ranks all of them find the same norm. Throws what
/// libtorch throws.
double clip_gradients(const NamedTensors& parameters, double most);

/// Multiplies the loss, so that small gradients do not vanish in float16, and takes the factor out of the
/// gradients again. A step whose gradients overflowed is to be left out; the factor halves then, and doubles
/// after `growth_steps` good ones. Averaged gradients are the same on all ranks, and so is all of this.
/// Methods throw what libtorch throws.
class LossScaler {
 public:
  static constexpr std::int64_t kGrowthSteps = 2000;

  explicit LossScaler(double scale = 65536, std::int64_t growth_steps = kGrowthSteps);

  /// The loss to begin the backward pass with.
  at::Tensor scaled(const at::Tensor& loss) const;
  /// Takes the factor out of the gradients. Whether all of them are finite: else the step is to be left out.
  bool unscale(const NamedTensors& parameters);
  /// After each step, one left out included: chooses the next one's factor.
  void update();

  double scale() const;
  /// "scaler.scale" and "scaler.good_steps", shared with this object: what a checkpoint holds.
  NamedTensors state() const;

 private:
  const std::int64_t growth_steps_;
  at::Tensor scale_;       ///< float32, one element, as the two below
  at::Tensor good_steps_;  ///< int32, since the factor last changed
  at::Tensor overflowed_;  ///< 1 when unscale() found so
};

}  // namespace stoker::torch
