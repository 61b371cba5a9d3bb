#include "train/trainer/learn/numerics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>

namespace stoker::train {

void configure_numerics(const job::TrainOptions& train) {
  at::set_num_threads(static_cast<int>(std::max<std::uint32_t>(1, train.threads)));
  at::globalContext().setDeterministicAlgorithms(train.deterministic, /*warn_only=*/false);
  at::globalContext().setAllowTF32CuBLAS(train.tf32);
  at::globalContext().setAllowTF32CuDNN(train.tf32);
  at::globalContext().setDeterministicCuDNN(train.deterministic);
  // The fastest convolution is looked up when a shape is first seen; the choice may differ between runs.
  at::globalContext().setBenchmarkCuDNN(!train.deterministic);
  // cuBLAS is deterministic only with a workspace of this kind, and reads it when it starts.
  if (train.deterministic) ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

Status check_finite(const NamedTensors& tensors) {
  // In float64 a sum of finite floats is finite; NaN and infinity propagate. One wait for a GPU, not one for
  // each.
  std::vector<at::Tensor> sums;
  std::vector<std::string_view> names;
  for (const NamedTensor& item : tensors) {
    if (!at::isFloatingType(item.tensor.scalar_type())) continue;
    const at::Tensor sum = at::sum(item.tensor.detach(), at::kDouble);
    sums.push_back(sums.empty() ? sum : sum.to(sums.front().device()));
    names.push_back(item.name);
  }
  if (sums.empty()) return {};
  const at::Tensor on_host = at::stack(sums).to(at::kCPU);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double sum = on_host.const_data_ptr<double>()[i];
    if (!std::isfinite(sum)) return invalid("weights are not finite: the sum of '{}' is {}", names[i], sum);
  }
  return {};
}

Autocast::Autocast(job::Precision precision, at::Device device)
    : is_on_(precision != job::Precision::fp32), device_(device.type()) {
  if (!is_on_) return;
  at::autocast::set_autocast_dtype(device_, precision == job::Precision::bf16 ? at::kBFloat16 : at::kHalf);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::increment_nesting();
}

// Weights converted for one pass must not be reused in the next one.
Autocast::~Autocast() {
  if (!is_on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, false);
}

}  // namespace stoker::train
