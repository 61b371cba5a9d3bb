// Gradient clipping as torch.nn.utils.clip_grad_norm_ and loss scaling for float16 as torch.amp.GradScaler,
// with the same bits. Used by the trainer. One object belongs to one thread.
#pragma once

#include <cstdint>

#include "stoker/model_state.h"

namespace stoker::train {

/// Returns the 2-norm of all gradients, without dimensions, on their device. If it exceeds `max_norm`, scales
/// them down to it in place, without waiting for the device. Ignores parameters without a gradient. After the
/// all-reduce all ranks compute the same norm. Throws libtorch's exceptions.
at::Tensor clip_grad_norm(const NamedTensors& parameters, double max_norm);

/// Scales the loss so that small gradients do not vanish in float16, and unscales the gradients. Skip a step
/// whose gradients overflowed. The scale halves after an overflow and doubles after `growth_steps` good
/// steps. All ranks compute the same scale from the averaged gradients. Methods throw libtorch's exceptions.
class GradScaler {
 public:
  static constexpr std::int64_t kGrowthSteps = 2000;

  explicit GradScaler(double scale = 65536, std::int64_t growth_steps = kGrowthSteps,
                      at::Device device = at::kCPU);

  /// The scaled loss for the backward pass.
  at::Tensor scaled(const at::Tensor& loss) const;
  /// Unscales the gradients, without waiting for the device.
  void unscale(const NamedTensors& parameters);
  /// After unscale(): 1 if a gradient is not finite, else 0; one float32 on the device. Such a step must have
  /// no effect.
  const at::Tensor& overflowed() const { return overflowed_; }
  /// Call it after each step, skipped ones included: sets the scale of the next step.
  void update();

  /// Waits for the device.
  double scale() const;
  /// The same on the device: one float32.
  const at::Tensor& scale_tensor() const { return scale_; }
  /// "scaler.scale" and "scaler.good_steps" for checkpoints, shared with this object.
  NamedTensors state() const;

 private:
  const std::int64_t growth_steps_;
  at::Tensor scale_;       ///< float32, one element like the two below
  at::Tensor good_steps_;  ///< int32, since the scale last changed
  at::Tensor overflowed_;  ///< 1 after an overflow
};

}  // namespace stoker::train
