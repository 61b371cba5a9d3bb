#include "torch/optim/schedule.h"

#include <cmath>
#include <numbers>

namespace stoker::torch {

namespace {

// The order of operations is PyTorch's, so that the doubles are, too.
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
    const double part = step / peak_step;
    return {annealed(annealing, first_lr, peak_lr, part),
            annealed(annealing, momentum_high, momentum_low, part)};
  }
  const double part = (step - peak_step) / (last_step - peak_step);
  return {annealed(annealing, peak_lr, last_lr, part),
          annealed(annealing, momentum_low, momentum_high, part)};
}

}  // namespace stoker::torch
