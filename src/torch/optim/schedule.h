// Learning rates over a training. Pure functions of the step; no libtorch. Used by the trainer.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::torch {

/// What the optimizer uses for one step.
struct Rates {
  double lr = 0;
  double momentum = 0;  ///< of the adaptive ones it is beta1
};

enum class Annealing { cosine, linear };

/// torch.optim.lr_scheduler.OneCycleLR: up to `peak_lr`, then down, momentum the other way round. Where
/// exactly one step climbs, which PyTorch divides by zero for, that one is at the peak.
struct OneCycle {
  double peak_lr = 0.1;
  std::int64_t total_steps = 1;
  double warmup = 0.3;        ///< part of the steps that climbs (pct_start)
  double start_divisor = 25;  ///< first rate = peak / this (div_factor)
  double end_divisor = 1e4;   ///< last rate = first rate / this (final_div_factor)
  Annealing annealing = Annealing::cosine;
  double momentum_low = 0.85;   ///< at the peak (base_momentum)
  double momentum_high = 0.95;  ///< at both ends (max_momentum)

  /// What optimizer step `index` (from 0) uses. REQUIRES: 0 <= index < total_steps.
  Rates at(std::int64_t index) const;
};

/// torch.optim.lr_scheduler.LinearLR: the first `steps` steps climb from lr / start_divisor towards lr.
struct WarmUp {
  std::int64_t steps = 0;
  double start_divisor = 25;

  /// What the rate of step `index` is multiplied with; 1 from `steps` on.
  double factor(std::int64_t index) const;
};

/// A warm-up, then half a cosine down: SequentialLR([LinearLR, CosineAnnealingLR]).
struct CosineDecay {
  double peak_lr = 0.1;
  double end_lr = 0;  ///< reached one step after the last one (eta_min)
  std::int64_t total_steps = 1;
  WarmUp warm_up;

  double at(std::int64_t index) const;
};

/// Constant but for drops: MultiStepLR; without drops constant. A warm-up multiplies on top.
struct StepDecay {
  double lr = 0.1;
  double factor = 0.1;              ///< gamma
  std::vector<std::int64_t> drops;  ///< the first steps with a lower rate, ascending (milestones)
  WarmUp warm_up;

  double at(std::int64_t index) const;
};

}  // namespace stoker::torch
