// Residual networks. Used by model.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "torch/models/model.h"

namespace stoker::torch {

enum class Block { basic, bottleneck };
enum class Stem {
  imagenet,  ///< 7x7 stride 2 and max-pool, 64 channels; projections where the shape changes
  cifar,     ///< 3x3, 16 channels; shortcuts without parameters (strided, padded with zero channels)
};

struct ResNetShape {
  Block block;
  Stem stem;
  std::vector<int> stages;  ///< blocks per stage; channels double and size halves from stage to stage
};

/// What may be asked of every shape.
struct ResNetVariant {
  std::int64_t classes = 10;
  std::int64_t heads = 1;  ///< with more than one: training uses one by chance, evaluation the mean of all
  /// Stochastic depth: in training block l of L is left out for a sample with probability drop x l / L, by a
  /// mask over its residual (torchvision.ops.stochastic_depth, mode "row").
  double drop = 0;
};

/// Weights are drawn from `random` in the order in which torchvision's constructor draws them.
std::unique_ptr<Model> make_resnet(const ResNetShape& shape, const ResNetVariant& variant,
                                   const at::Generator& random);

}  // namespace stoker::torch
