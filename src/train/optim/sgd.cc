#include "stoker/sgd.h"

#include <utility>

#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

namespace stoker::train {

Sgd::Sgd(NamedTensors parameters, const SgdOptions& options)
    : parameters_(std::move(parameters)), options_(options), buffers_(parameters_.size()) {}

void Sgd::step(const Rates& rates) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].tensor;
    at::Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    const bool decays = options_.weight_decay != 0 &&
                        (options_.bias_and_norm == BiasAndNorm::included || parameter.dim() > 1);
    if (decays) gradient = gradient.add(parameter, options_.weight_decay);
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
