#include "stoker/sgd.h"

#include <optional>
#include <utility>

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include "train/optim/kernels.h"

namespace stoker::train {

/// Parameters of a step that are treated alike.
struct Sgd::Group {
  bool decays = false;
  bool is_first = false;  ///< the momentum buffers are new
  std::vector<at::Tensor> parameters, gradients, buffers;
};

Sgd::Sgd(NamedTensors parameters, const SgdOptions& options)
    : parameters_(std::move(parameters)),
      options_(options),
      kernels_(chosen_kernels(options.kernels, parameters_)),
      buffers_(parameters_.size()) {}

bool Sgd::decays(const at::Tensor& parameter) const {
  return options_.weight_decay != 0 &&
         (options_.bias_and_norm == BiasAndNorm::included || parameter.dim() > 1);
}

void Sgd::step_per_tensor(const Rates& rates) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].tensor;
    at::Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    if (decays(parameter)) gradient = gradient.add(parameter, options_.weight_decay);
    if (rates.momentum != 0) {
      at::Tensor& buffer = buffers_[i];
      if (buffer.defined()) {
        buffer.mul_(rates.momentum).add_(gradient, 1 - options_.dampening);
      } else {
        buffer = gradient.clone();
      }
      gradient = options_.kind == Momentum::nesterov ? gradient.add(buffer, rates.momentum) : buffer;
    }
    parameter.add_(gradient, -rates.lr);
  }
}

// New buffers are filled by the step.
std::vector<Sgd::Group> Sgd::groups(bool has_momentum) {
  std::vector<Group> all(4);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].tensor;
    if (!parameter.grad().defined()) continue;
    const bool is_first = has_momentum && !buffers_[i].defined();
    if (is_first) buffers_[i] = at::empty_like(parameter.detach());
    Group& group = all[(decays(parameter) ? 2u : 0u) + (is_first ? 1u : 0u)];
    group.decays = decays(parameter);
    group.is_first = is_first;
    group.parameters.push_back(parameter);
    group.gradients.push_back(parameter.grad());
    if (has_momentum) group.buffers.push_back(buffers_[i]);
  }
  std::erase_if(all, [](const Group& group) { return group.parameters.empty(); });
  return all;
}

// The gradients with weight decay. `momentum`, of the buffers, is a double or a tensor.
template <typename Factor>
std::vector<at::Tensor> Sgd::accumulate(Group& group, const Factor& momentum) const {
  std::vector<at::Tensor> gradients = group.gradients;
  if (group.decays) gradients = at::_foreach_add(gradients, group.parameters, options_.weight_decay);
  if (group.is_first) {
    for (std::size_t i = 0; i < gradients.size(); ++i) group.buffers[i].copy_(gradients[i]);
  } else if (!group.buffers.empty()) {
    at::_foreach_mul_(group.buffers, momentum);
    at::_foreach_add_(group.buffers, gradients, 1 - options_.dampening);
  }
  return gradients;
}

// torch.optim's _multi_tensor_sgd.
void Sgd::step_foreach(Group& group, const Rates& rates) const {
  std::vector<at::Tensor> change = accumulate(group, rates.momentum);
  if (!group.buffers.empty()) {
    change = options_.kind == Momentum::nesterov ? at::_foreach_add(change, group.buffers, rates.momentum)
                                                 : group.buffers;
  }
  at::_foreach_add_(group.parameters, change, -rates.lr);
}

void Sgd::step_foreach(Group& group, const DeviceRates& rates) const {
  const at::Tensor momentum =
      rates.momentum.defined() ? rates.momentum : at::full_like(rates.lr, rates.fixed_momentum);
  std::vector<at::Tensor> change = accumulate(group, momentum);
  if (!group.buffers.empty()) {
    change = options_.kind == Momentum::nesterov
                 ? at::_foreach_add(change, at::_foreach_mul(group.buffers, momentum))
                 : group.buffers;
  }
  at::_foreach_add_(group.parameters, at::_foreach_mul(change, rates.lr), -1);
}

// `lr` is a double or a tensor.
template <typename Rate>
void Sgd::step_fused(Group& group, const Rate& lr, double momentum,
                     const std::optional<at::Tensor>& overflowed) const {
  at::_fused_sgd_(group.parameters, group.gradients, group.buffers, group.decays ? options_.weight_decay : 0,
                  momentum, lr, options_.dampening, options_.kind == Momentum::nesterov, /*maximize=*/false,
                  group.is_first, std::nullopt, overflowed);
}

void Sgd::step(const Rates& rates) {
  const at::NoGradGuard no_grad;
  if (kernels_ == OptimizerKernels::per_tensor) return step_per_tensor(rates);
  for (Group& group : groups(rates.momentum != 0)) {
    if (kernels_ == OptimizerKernels::foreach) {
      step_foreach(group, rates);
    } else {
      step_fused(group, rates.lr, rates.momentum, std::nullopt);
    }
  }
}

bool Sgd::step(const DeviceRates& rates) {
  // The fused kernel reads the rate on the device, but not the momentum.
  const bool is_fused = kernels_ == OptimizerKernels::fused && !rates.momentum.defined();
  if (kernels_ == OptimizerKernels::per_tensor || (rates.overflowed.defined() && !is_fused)) return false;
  const at::NoGradGuard no_grad;
  std::optional<at::Tensor> overflowed;
  if (rates.overflowed.defined()) {
    overflowed = rates.overflowed;
    make_state({.momentum = rates.fixed_momentum});  // a skipped first step would not write new buffers
  }
  for (Group& group : groups(rates.momentum.defined() || rates.fixed_momentum != 0)) {
    if (is_fused) {
      step_fused(group, rates.lr, rates.fixed_momentum, overflowed);
    } else {
      step_foreach(group, rates);
    }
  }
  return true;
}

void Sgd::make_state(const Rates& rates) {
  if (rates.momentum == 0) return;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!buffers_[i].defined()) buffers_[i] = at::zeros_like(parameters_[i].tensor.detach());
  }
}

NamedTensors Sgd::state() const {
  NamedTensors state;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (buffers_[i].defined())
      state.push_back({"state." + parameters_[i].name + ".momentum_buffer", buffers_[i]});
  }
  return state;
}

}  // namespace stoker::train
