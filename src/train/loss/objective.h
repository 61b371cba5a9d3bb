// The training objective: cross entropy with label smoothing, and mixup or cutmix of images. Random choices
// depend only on the given number. Used by the trainer.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "image/transform/mix.h"
#include "stoker/status.h"

namespace stoker::train {

/// The labels of a batch. After mixing each sample has two labels.
struct MixedTargets {
  at::Tensor labels;         ///< label with the larger share
  at::Tensor second_labels;  ///< undefined without mixing
  double share = 1;          ///< share of `labels`; `second_labels` has the rest
};

struct MixupOptions {
  double mixup = 0;   ///< shares of the two mixed images have a Beta(mixup, mixup) distribution; 0: off
  double cutmix = 0;  ///< the same for the area of the box cut from another image; if both are set, one is
                      ///< chosen at random
};

/// Mixes each image of a batch (float32, N x 3 x H x W, in NCHW or NHWC memory) in place with its
/// predecessor, as the loader does (image/transform/mix.h), and sets the labels. `random` determines all
/// choices. Invalid: a value of `options` is neither 0 nor between 0.05 and 100. Throws libtorch's
/// exceptions.
Status mix(const at::Tensor& images, MixedTargets& targets, const MixupOptions& options,
           std::uint64_t random);

/// The mixing itself, with tensor operations: on a GPU. Differs from the loader's in rounding only. Throws
/// libtorch's exceptions.
void mix_on_device(const at::Tensor& images, image::MixKind kind, const image::Mix& drawn);

/// Mean cross entropy of the batch with label smoothing. Throws libtorch's exceptions.
at::Tensor training_loss(const at::Tensor& logits, const MixedTargets& targets, double smoothing);

}  // namespace stoker::train
