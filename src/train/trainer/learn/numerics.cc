#include "train/trainer/learn/numerics.h"

#include <algorithm>
#include <cmath>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/sum.h>

namespace stoker::train {

void configure_numerics(const job::TrainOptions& train) {
  at::set_num_threads(static_cast<int>(std::max<std::uint32_t>(1, train.threads)));
  at::globalContext().setDeterministicAlgorithms(train.deterministic, /*warn_only=*/false);
  at::globalContext().setAllowTF32CuBLAS(train.tf32);
  at::globalContext().setAllowTF32CuDNN(train.tf32);
}

Status check_finite(const NamedTensors& tensors) {
  for (const NamedTensor& item : tensors) {
    if (!at::isFloatingType(item.tensor.scalar_type())) continue;
    // In float64 a sum of finite floats is finite; NaN and infinity propagate.
    const double sum = at::sum(item.tensor.detach(), at::kDouble).item<double>();
    if (!std::isfinite(sum)) return invalid("weights are not finite: the sum of '{}' is {}", item.name, sum);
  }
  return {};
}

Autocast::Autocast(job::Precision precision) : is_on_(precision != job::Precision::fp32) {
  if (!is_on_) return;
  at::autocast::set_autocast_dtype(at::kCPU, precision == job::Precision::bf16 ? at::kBFloat16 : at::kHalf);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::increment_nesting();
}

// Weights converted for one pass must not be reused in the next one.
Autocast::~Autocast() {
  if (!is_on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

}  // namespace stoker::train
