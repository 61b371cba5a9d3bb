// What a batch is trained towards: cross entropy with smoothed labels, and images mixed with each other
// (mixup, cutmix). Random choices are a pure function of the numbers given. Used by the trainer.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "base/status.h"

namespace stoker::torch {

/// The labels of a batch; after mixing each sample has two.
struct Targets {
  at::Tensor labels;  ///< of the larger share
  at::Tensor others;  ///< undefined: nothing is mixed
  double share = 1;   ///< of `labels`; `others` have the rest
};

struct MixOptions {
  double mixup = 0;  ///< both shares of a sum of two images are Beta(mixup, mixup); 0 never
  double cutmix =
      0;  ///< the same for the area of a box cut out of another image; with both, either by chance
};

/// Mixes each image of a batch (float32, N x 3 x H x W, its memory NCHW or NHWC) in place with the one before
/// it, as the loader does (data/transform/mix.h), and tells the labels. `random` decides. Invalid: a number
/// of `options` is neither 0 nor between 0.05 and 100. Throws what libtorch throws.
Status mix(const at::Tensor& images, Targets& targets, const MixOptions& options, std::uint64_t random);

/// The mean over the batch of the cross entropy with `smoothing` of each label's weight spread over all
/// classes. Throws what libtorch throws.
at::Tensor training_loss(const at::Tensor& logits, const Targets& targets, double smoothing);

}  // namespace stoker::torch
