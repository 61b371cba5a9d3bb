// Learning rate schedules. Pure functions of the step; no libtorch. Used by the trainer.
#pragma once

#include <cstdint>
#include <vector>

#include "stoker/choices.h"

namespace stoker::train {

/// Hyper-parameters of one optimizer step.
struct Rates {
  double lr = 0;
  double momentum = 0;  ///< beta1 for AdamW and LAMB
};

/// torch.optim.lr_scheduler.OneCycleLR: up to `peak_lr`, then down, momentum the other way round. A warm-up
/// of exactly one step, for which PyTorch divides by zero, starts at the peak.
struct OneCycle {
  double peak_lr = 0.1;
  std::int64_t total_steps = 1;
  double warmup = 0.3;        ///< share of warm-up steps (pct_start)
  double start_divisor = 25;  ///< first rate = peak / this (div_factor)
  double end_divisor = 1e4;   ///< last rate = first rate / this (final_div_factor)
  Annealing annealing = Annealing::cosine;
  double momentum_low = 0.85;   ///< at the peak (base_momentum)
  double momentum_high = 0.95;  ///< at both ends (max_momentum)

  /// Rates of optimizer step `index` (from 0). REQUIRES: 0 <= index < total_steps.
  Rates at(std::int64_t index) const;
};

/// torch.optim.lr_scheduler.LinearLR: the rate increases from lr / start_divisor to lr over `steps` steps.
struct WarmUp {
  std::int64_t steps = 0;
  double start_divisor = 25;

  /// Factor of step `index`; 1 from `steps` on.
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

/// MultiStepLR; constant without milestones. A warm-up multiplies the rate.
struct StepDecay {
  double lr = 0.1;
  double factor = 0.1;                   ///< gamma
  std::vector<std::int64_t> milestones;  ///< first steps with a lower rate, ascending
  WarmUp warm_up;

  double at(std::int64_t index) const;
};

}  // namespace stoker::train
