#include "train/models/layers.h"

#include <cmath>

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "stoker/sync_batch_norm.h"

namespace stoker::train {

namespace {

constexpr double kMomentum = 0.1;
constexpr double kEpsilon = 1e-5;

// nn.Conv2d and nn.Linear: kaiming_uniform_(weight, a=sqrt(5)), in the same order of double operations.
void default_weight(at::Tensor& weight, double fan_in, const at::Generator& random) {
  const double a = std::sqrt(5.0);
  const double gain = std::sqrt(2.0 / (1 + a * a));
  const double bound = std::sqrt(3.0) * (gain / std::sqrt(fan_in));
  weight.uniform_(-bound, bound, random);
}

}  // namespace

void ModelState::add_parameter(const std::string& name, at::Tensor& tensor) {
  tensor.set_requires_grad(true);
  all.push_back({name, tensor});
  parameters.push_back({name, tensor});
}

void ModelState::add_buffer(const std::string& name, const at::Tensor& tensor) {
  all.push_back({name, tensor});
  buffers.push_back({name, tensor});
}

Conv::Conv(const Geometry& g, const at::Generator& random)
    : weight(at::empty({g.out, g.in, g.kernel, g.kernel}, at::kFloat)), geometry(g) {
  default_weight(weight, static_cast<double>(g.in * g.kernel * g.kernel), random);
}

at::Tensor Conv::operator()(const at::Tensor& x) const {
  return at::conv2d(x, weight, {}, geometry.stride, geometry.kernel / 2);
}

void Conv::initialise_for_relu(const at::Generator& random) {
  const double fan_out = static_cast<double>(geometry.out * geometry.kernel * geometry.kernel);
  weight.normal_(0, std::sqrt(2.0) / std::sqrt(fan_out), random);
}

BatchNorm::BatchNorm(std::int64_t channels)
    : weight(at::ones({channels})),
      bias(at::zeros({channels})),
      running_mean(at::zeros({channels})),
      running_var(at::ones({channels})),
      num_batches_tracked(at::zeros({}, at::kLong)) {}

at::Tensor BatchNorm::operator()(const at::Tensor& x, Mode mode) const {
  const bool training = mode == Mode::train;
  if (training) num_batches_tracked.add_(1);
  if (training && SyncBatchNormScope::group() != nullptr) {
    return sync_batch_norm(*SyncBatchNormScope::group(), x,
                           {weight, bias, running_mean, running_var, kMomentum, kEpsilon});
  }
  return at::batch_norm(x, weight, bias, running_mean, running_var, training, kMomentum, kEpsilon,
                        /*cudnn_enabled=*/true);
}

void BatchNorm::add_to(ModelState& state, const std::string& prefix) {
  state.add_parameter(prefix + ".weight", weight);
  state.add_parameter(prefix + ".bias", bias);
  state.add_buffer(prefix + ".running_mean", running_mean);
  state.add_buffer(prefix + ".running_var", running_var);
  state.add_buffer(prefix + ".num_batches_tracked", num_batches_tracked);
}

Linear::Linear(std::int64_t in, std::int64_t out, const at::Generator& random)
    : weight(at::empty({out, in}, at::kFloat)), bias(at::empty({out}, at::kFloat)) {
  default_weight(weight, static_cast<double>(in), random);
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  bias.uniform_(-bound, bound, random);
}

at::Tensor Linear::operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }

void Linear::add_to(ModelState& state, const std::string& prefix) {
  state.add_parameter(prefix + ".weight", weight);
  state.add_parameter(prefix + ".bias", bias);
}

LayerNorm::LayerNorm(std::int64_t width) : weight(at::ones({width})), bias(at::zeros({width})) {}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  constexpr double kVisionEpsilon = 1e-6;  // torchvision's transformers, not PyTorch's default
  return at::layer_norm(x, {weight.size(0)}, weight, bias, kVisionEpsilon);
}

void LayerNorm::add_to(ModelState& state, const std::string& prefix) {
  state.add_parameter(prefix + ".weight", weight);
  state.add_parameter(prefix + ".bias", bias);
}

void xavier_uniform(at::Tensor& weight, const at::Generator& random) {
  const double deviation = std::sqrt(2.0 / static_cast<double>(weight.size(0) + weight.size(1)));
  const double bound = std::sqrt(3.0) * deviation;
  weight.uniform_(-bound, bound, random);
}

void ConvNorm::add_to(ModelState& state, const std::string& conv_name, const std::string& norm_name) {
  state.add_parameter(conv_name + ".weight", conv.weight);
  norm.add_to(state, norm_name);
}

}  // namespace stoker::train
