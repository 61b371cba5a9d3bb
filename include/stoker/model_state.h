// The tensors of a model under their names in PyTorch's state_dict().
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stoker::train {

/// Shares the tensor's storage. Example of a name: "layer1.0.conv1.weight".
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};
using NamedTensors = std::vector<NamedTensor>;

enum class Mode { train, evaluate };

/// A model's tensors in the order of PyTorch's state_dict().
struct ModelState {
  NamedTensors all;
  NamedTensors parameters;
  NamedTensors buffers;

  void add_parameter(const std::string& name, at::Tensor& tensor);
  void add_buffer(const std::string& name, const at::Tensor& tensor);
};

}  // namespace stoker::train
