// A tensor and the name by which a state dict knows it. Used by everything in this room.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stoker::torch {

/// Shares the tensor's storage; "layer1.0.conv1.weight" is a name.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};
using NamedTensors = std::vector<NamedTensor>;

}  // namespace stoker::torch
