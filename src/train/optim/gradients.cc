#include "stoker/gradients.h"

#include <vector>

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

namespace stoker::train {

namespace {

std::vector<at::Tensor> gradients_of(const NamedTensors& parameters) {
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& item : parameters) {
    if (item.tensor.grad().defined()) gradients.push_back(item.tensor.grad());
  }
  return gradients;
}

}  // namespace

at::Tensor clip_grad_norm(const NamedTensors& parameters, double max_norm) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return at::zeros({}, at::kFloat);
  const bool is_on_cpu = gradients.front().is_cpu();
  std::vector<at::Tensor> norms;
  if (is_on_cpu) {
    for (const at::Tensor& gradient : gradients) norms.push_back(at::linalg_vector_norm(gradient));
  } else {
    norms = at::_foreach_norm(gradients);
  }
  const at::Tensor norm = at::linalg_vector_norm(at::stack(norms));
  const at::Tensor factor = norm.add(1e-6).reciprocal().mul(max_norm).clamp_max(1);
  if (is_on_cpu) {
    for (const at::Tensor& gradient : gradients) gradient.mul_(factor);
  } else {
    at::_foreach_mul_(gradients, factor);
  }
  return norm;
}

GradScaler::GradScaler(double scale, std::int64_t growth_steps, at::Device device)
    : growth_steps_(growth_steps),
      scale_(at::full({1}, scale, at::TensorOptions(at::kFloat).device(device))),
      good_steps_(at::zeros({1}, at::TensorOptions(at::kInt).device(device))),
      overflowed_(at::zeros({1}, at::TensorOptions(at::kFloat).device(device))) {}

at::Tensor GradScaler::scaled(const at::Tensor& loss) const { return loss.mul(scale_.squeeze()); }

void GradScaler::unscale(const NamedTensors& parameters) {
  const at::NoGradGuard no_grad;
  overflowed_.zero_();
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  // As in Python: the reciprocal is float64.
  const at::Tensor inverse = scale_.to(at::kDouble).reciprocal().to(at::kFloat);
  if (!gradients.empty()) at::_amp_foreach_non_finite_check_and_unscale_(gradients, overflowed_, inverse);
}

void GradScaler::update() {
  constexpr double kGrowth = 2, kBackoff = 0.5;
  at::_amp_update_scale_(scale_, good_steps_, overflowed_, kGrowth, kBackoff, growth_steps_);
}

double GradScaler::scale() const { return scale_.item<float>(); }

NamedTensors GradScaler::state() const {
  return {{"scaler.scale", scale_}, {"scaler.good_steps", good_steps_}};
}

}  // namespace stoker::train
