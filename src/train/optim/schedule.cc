#include "stoker/schedule.h"

#include <cmath>
#include <numbers>

namespace stoker::train {

namespace {

// The order of operations is PyTorch's, so the doubles are equal.
double annealed(Annealing annealing, double from, double to, double part) {
  if (annealing == Annealing::linear) return (to - from) * part + from;
  return to + (from - to) / 2.0 * (std::cos(std::numbers::pi * part) + 1);
}

}  // namespace

Rates OneCycle::at(std::int64_t index) const {
  const double first_lr = peak_lr / start_divisor;
  const double last_lr = first_lr / end_divisor;
  const double peak_step = warmup * static_cast<double>(total_steps) - 1;
  const double last_step = static_cast<double>(total_steps - 1);
  const double step = static_cast<double>(index);
  if (step <= peak_step) {
    const double part = peak_step > 0 ? step / peak_step : 1;  // a warm-up of one step starts at the peak
    return {annealed(annealing, first_lr, peak_lr, part),
            annealed(annealing, momentum_high, momentum_low, part)};
  }
  const double part = (step - peak_step) / (last_step - peak_step);
  return {annealed(annealing, peak_lr, last_lr, part),
          annealed(annealing, momentum_low, momentum_high, part)};
}

double WarmUp::factor(std::int64_t index) const {
  if (index >= steps) return 1;
  const double start = 1 / start_divisor;
  return start + (1 - start) * static_cast<double>(index) / static_cast<double>(steps);
}

double CosineDecay::at(std::int64_t index) const {
  if (index < warm_up.steps) return peak_lr * warm_up.factor(index);
  const double length = static_cast<double>(total_steps - warm_up.steps);
  const double part = static_cast<double>(index - warm_up.steps) / length;
  return end_lr + (peak_lr - end_lr) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

double StepDecay::at(std::int64_t index) const {
  double rate = lr;
  for (const std::int64_t milestone : milestones) {
    if (index >= milestone) rate *= factor;
  }
  return rate * warm_up.factor(index);
}

}  // namespace stoker::train
