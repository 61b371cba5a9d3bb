#include "stoker/ema.h"

#include <utility>

#include <ATen/ops/_foreach_lerp.h>
#include <c10/core/GradMode.h>

namespace stoker::train {

Ema::Ema(NamedTensors parameters, double decay) : parameters_(std::move(parameters)), decay_(decay) {
  for (const NamedTensor& item : parameters_) means_.push_back(item.tensor.detach().clone());
}

void Ema::update(std::int64_t step) {
  const at::NoGradGuard no_grad;
  if (step > 1 && !means_.empty() && !means_.front().is_cpu()) {
    std::vector<at::Tensor> weights;
    for (const NamedTensor& item : parameters_) weights.push_back(item.tensor.detach());
    at::_foreach_lerp_(means_, weights, 1 - decay_);
    return;
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (step <= 1) {
      means_[i].copy_(parameters_[i].tensor);
    } else {
      means_[i].lerp_(parameters_[i].tensor, 1 - decay_);
    }
  }
}

NamedTensors Ema::state() const {
  NamedTensors state;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    state.push_back({"ema." + parameters_[i].name, means_[i]});
  return state;
}

Ema::Scope::Scope(Ema& ema) : ema_(ema) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < ema_.parameters_.size(); ++i) {
    own_.push_back(ema_.parameters_[i].tensor.clone());
    ema_.parameters_[i].tensor.copy_(ema_.means_[i]);
  }
}

Ema::Scope::~Scope() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < own_.size(); ++i) ema_.parameters_[i].tensor.copy_(own_[i]);
}

}  // namespace stoker::train
