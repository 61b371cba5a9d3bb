// Residual networks. Used by model.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stoker/model.h"

namespace stoker::train {

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

/// Options for every architecture.
struct ResNetVariant {
  std::int64_t classes = 10;
  std::int64_t heads = 1;  ///< above 1, training uses a random head, evaluation the mean of all heads
  /// Stochastic depth: in training, block l of L is dropped for a sample with probability drop x l / L, by
  /// masking its residual (torchvision.ops.stochastic_depth, mode "row").
  double drop = 0;
};

/// Draws weights from `random` in the order of torchvision's constructor.
std::unique_ptr<Model> make_resnet(const ResNetShape& shape, const ResNetVariant& variant,
                                   const at::Generator& random);

}  // namespace stoker::train
