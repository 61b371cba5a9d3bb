#include "stoker/adaptive.h"

#include <cmath>
#include <utility>

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include "train/optim/kernels.h"

namespace stoker::train {

namespace {

constexpr double kLarsEpsilon = 1e-8;

bool is_excluded(BiasAndNorm bias_and_norm, const at::Tensor& parameter) {
  return bias_and_norm == BiasAndNorm::excluded && parameter.dim() <= 1;
}

// The trust ratio of these norms, without dimensions; 1 if a norm is 0.
at::Tensor trust_ratio(const at::Tensor& weights, const at::Tensor& other, const at::Tensor& ratio) {
  return at::where(weights.gt(0).logical_and(other.gt(0)), ratio, at::ones_like(ratio));
}

// Adds -lr x ratio x change. On a GPU the ratio is not waited for.
void add_scaled(const at::Tensor& parameter, const at::Tensor& change, const at::Tensor& ratio, double lr) {
  if (ratio.is_cpu()) {
    parameter.add_(change, -lr * static_cast<double>(ratio.item<float>()));
  } else {
    parameter.addcmul_(change, ratio, -lr);
  }
}

}  // namespace

AdamBase::AdamBase(const NamedTensors& parameters, const AdaptiveOptions& options)
    : options_(options), kernels_(chosen_kernels(options.kernels, parameters)) {
  for (const NamedTensor& item : parameters) {
    const at::Tensor like = item.tensor.detach();
    // As in torch.optim: only fused kernels count steps on the device.
    const at::Device counts_on = kernels_ == OptimizerKernels::fused ? like.device() : at::Device(at::kCPU);
    slots_.push_back({.parameter = item,
                      .steps = at::zeros({}, at::TensorOptions(at::kFloat).device(counts_on)),
                      .mean = at::zeros_like(like),
                      .square = at::zeros_like(like),
                      .is_excluded = is_excluded(options.bias_and_norm, like)});
  }
}

void AdamBase::step(const Rates& rates) {
  const at::NoGradGuard no_grad;
  for (Slot& slot : slots_) {
    const at::Tensor gradient = slot.parameter.tensor.grad();
    if (!gradient.defined()) continue;
    slot.steps.add_(1);
    const double steps = slot.steps.item<double>();  // LAMB with fused kernels waits for it
    update(slot, gradient,
           {.lr = rates.lr,
            .beta1 = rates.momentum,
            .correction1 = 1 - std::pow(rates.momentum, steps),
            .correction2 = 1 - std::pow(options_.beta2, steps)});
  }
}

NamedTensors AdamBase::state() const {
  NamedTensors state;
  for (const Slot& slot : slots_) {
    const std::string prefix = "state." + slot.parameter.name;
    state.push_back({prefix + ".step", slot.steps});
    state.push_back({prefix + ".exp_avg", slot.mean});
    state.push_back({prefix + ".exp_avg_sq", slot.square});
  }
  return state;
}

void AdamW::update(Slot& slot, const at::Tensor& gradient, const Scale& scale) {
  const at::Tensor& parameter = slot.parameter.tensor;
  const double decay = slot.is_excluded ? 0 : options_.weight_decay;
  if (decay != 0) parameter.mul_(1 - scale.lr * decay);
  slot.mean.lerp_(gradient, 1 - scale.beta1);
  slot.square.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
  const at::Tensor divisor = slot.square.sqrt().div_(std::pow(scale.correction2, 0.5)).add_(options_.epsilon);
  parameter.addcdiv_(slot.mean, divisor, -(scale.lr / scale.correction1));
}

template <typename Rate>
void AdamW::step_fused(const Rate& lr, double beta1, const std::optional<at::Tensor>& overflowed) {
  const at::NoGradGuard no_grad;
  for (const bool is_excluded : {false, true}) {
    std::vector<at::Tensor> parameters, gradients, means, squares, steps;
    for (const Slot& slot : slots_) {
      const at::Tensor& gradient = slot.parameter.tensor.grad();
      if (slot.is_excluded != is_excluded || !gradient.defined()) continue;
      parameters.push_back(slot.parameter.tensor);
      gradients.push_back(gradient);
      means.push_back(slot.mean);
      squares.push_back(slot.square);
      steps.push_back(slot.steps);
    }
    if (parameters.empty()) continue;
    at::_foreach_add_(steps, 1);
    at::_fused_adamw_(parameters, gradients, means, squares, {}, steps, lr, beta1, options_.beta2,
                      is_excluded ? 0 : options_.weight_decay, options_.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false, std::nullopt, overflowed);
    if (overflowed) at::_foreach_sub_(steps, std::vector<at::Tensor>(steps.size(), overflowed->squeeze()));
  }
}

void AdamW::step(const Rates& rates) {
  if (kernels_ != OptimizerKernels::fused) return AdamBase::step(rates);
  step_fused(rates.lr, rates.momentum, std::nullopt);
}

bool AdamW::step(const DeviceRates& rates) {
  if (kernels_ != OptimizerKernels::fused || rates.momentum.defined()) return false;
  std::optional<at::Tensor> overflowed;
  if (rates.overflowed.defined()) overflowed = rates.overflowed;
  step_fused(rates.lr, rates.fixed_momentum, overflowed);
  return true;
}

void Lamb::update(Slot& slot, const at::Tensor& gradient, const Scale& scale) {
  const at::Tensor& parameter = slot.parameter.tensor;
  slot.mean.mul_(scale.beta1).add_(gradient, 1 - scale.beta1);
  slot.square.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
  at::Tensor update = slot.mean.div(scale.correction1)
                          .div_(slot.square.div(scale.correction2).sqrt_().add_(options_.epsilon));
  if (slot.is_excluded) {
    parameter.add_(update, -scale.lr);
    return;
  }
  if (options_.weight_decay != 0) update = update.add(parameter.mul(options_.weight_decay));
  const at::Tensor weight_norm = at::linalg_vector_norm(parameter);
  const at::Tensor update_norm = at::linalg_vector_norm(update);
  add_scaled(parameter, update, trust_ratio(weight_norm, update_norm, weight_norm.div(update_norm)),
             scale.lr);
}

Lars::Lars(NamedTensors parameters, const LarsOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const NamedTensor& item : parameters_) buffers_.push_back(at::zeros_like(item.tensor.detach()));
}

void Lars::step(const Rates& rates) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].tensor;
    at::Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    buffers_[i].mul_(rates.momentum);
    if (is_excluded(options_.bias_and_norm, parameter)) {
      buffers_[i].add_(gradient, rates.lr);
    } else {
      const at::Tensor weight_norm = at::linalg_vector_norm(parameter);
      const at::Tensor gradient_norm = at::linalg_vector_norm(gradient);
      const at::Tensor ratio =
          weight_norm.mul(options_.trust_coefficient)
              .div(gradient_norm.add(weight_norm.mul(options_.weight_decay)).add(kLarsEpsilon));
      if (options_.weight_decay != 0) gradient = gradient.add(parameter.mul(options_.weight_decay));
      add_scaled(buffers_[i], gradient, trust_ratio(weight_norm, gradient_norm, ratio), -rates.lr);
    }
    parameter.sub_(buffers_[i]);
  }
}

NamedTensors Lars::state() const {
  NamedTensors state;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    state.push_back({"state." + parameters_[i].name + ".momentum_buffer", buffers_[i]});
  return state;
}

}  // namespace stoker::train
