// The layers of the built-in models: plain structs of tensors over ATen functions, initialised with the same
// numbers as torch.nn for the same seed. Used by models/ only. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "stoker/model_state.h"

namespace stoker::train {

/// torch.nn.Conv2d without bias. The constructor draws the initial weights of nn.Conv2d even though ResNets
/// draw them again, so that later random numbers match PyTorch's.
struct Conv {
  struct Geometry {
    std::int64_t in = 0, out = 0, kernel = 1, stride = 1;  ///< padding preserves the size at stride 1
  };
  at::Tensor weight;
  Geometry geometry;

  Conv(const Geometry& geometry, const at::Generator& random);
  at::Tensor operator()(const at::Tensor& x) const;
  /// torch.nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu")
  void initialise_for_relu(const at::Generator& random);
};

/// torch.nn.BatchNorm2d.
struct BatchNorm {
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;

  explicit BatchNorm(std::int64_t channels);
  at::Tensor operator()(const at::Tensor& x, Mode mode) const;
  void add_to(ModelState& state, const std::string& prefix);
};

/// torch.nn.Linear.
struct Linear {
  at::Tensor weight, bias;

  Linear(std::int64_t in, std::int64_t out, const at::Generator& random);
  at::Tensor operator()(const at::Tensor& x) const;
  void add_to(ModelState& state, const std::string& prefix);
};

/// torch.nn.LayerNorm over the last dimension.
struct LayerNorm {
  at::Tensor weight, bias;

  explicit LayerNorm(std::int64_t width);
  at::Tensor operator()(const at::Tensor& x) const;
  void add_to(ModelState& state, const std::string& prefix);
};

/// torch.nn.init.xavier_uniform_.
void xavier_uniform(at::Tensor& weight, const at::Generator& random);

/// Convolution, then batch norm.
struct ConvNorm {
  Conv conv;
  BatchNorm norm;

  ConvNorm(const Conv::Geometry& geometry, const at::Generator& random)
      : conv(geometry, random), norm(geometry.out) {}
  at::Tensor operator()(const at::Tensor& x, Mode mode) const { return norm(conv(x), mode); }
  void add_to(ModelState& state, const std::string& conv_name, const std::string& norm_name);
};

}  // namespace stoker::train
