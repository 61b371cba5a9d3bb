#include "stoker/adaptive.h"

#include <cmath>
#include <utility>

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

namespace stoker::train {

namespace {

constexpr double kLarsEpsilon = 1e-8;

bool is_excluded(BiasAndNorm bias_and_norm, const at::Tensor& parameter) {
  return bias_and_norm == BiasAndNorm::excluded && parameter.dim() <= 1;
}

// The trust ratio, in the precision of its tensors; 1 if a norm is 0.
template <typename Rate>
double trust_ratio(const at::Tensor& a, const at::Tensor& b, Rate rate) {
  if (a.item<float>() > 0 && b.item<float>() > 0) return static_cast<double>(rate().template item<float>());
  return 1;
}

}  // namespace

AdamBase::AdamBase(const NamedTensors& parameters, const AdaptiveOptions& options) : options_(options) {
  for (const NamedTensor& item : parameters) {
    const at::Tensor like = item.tensor.detach();
    slots_.push_back({.parameter = item,
                      .steps = at::zeros({}, at::kFloat),
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
    const double steps = slot.steps.item<double>();
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

void Lamb::update(Slot& slot, const at::Tensor& gradient, const Scale& scale) {
  const at::Tensor& parameter = slot.parameter.tensor;
  slot.mean.mul_(scale.beta1).add_(gradient, 1 - scale.beta1);
  slot.square.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
  at::Tensor update = slot.mean.div(scale.correction1)
                          .div_(slot.square.div(scale.correction2).sqrt_().add_(options_.epsilon));
  double rate = 1;
  if (!slot.is_excluded) {
    if (options_.weight_decay != 0) update = update.add(parameter.mul(options_.weight_decay));
    const at::Tensor weight_norm = at::linalg_vector_norm(parameter);
    const at::Tensor update_norm = at::linalg_vector_norm(update);
    rate = trust_ratio(weight_norm, update_norm, [&] { return weight_norm.div(update_norm); });
  }
  parameter.add_(update, -scale.lr * rate);
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
    double rate = 1;
    if (!is_excluded(options_.bias_and_norm, parameter)) {
      const at::Tensor weight_norm = at::linalg_vector_norm(parameter);
      const at::Tensor gradient_norm = at::linalg_vector_norm(gradient);
      rate = trust_ratio(weight_norm, gradient_norm, [&] {
        return weight_norm.mul(options_.trust_coefficient)
            .div(gradient_norm.add(weight_norm.mul(options_.weight_decay)).add(kLarsEpsilon));
      });
      if (options_.weight_decay != 0) gradient = gradient.add(parameter.mul(options_.weight_decay));
    }
    buffers_[i].mul_(rates.momentum).add_(gradient, rates.lr * rate);
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
