// The loader's memory as tensors, copied only if the model needs another type. Used by training and
// validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "stoker/loader.h"
#include "stoker/model.h"
#include "stoker/status.h"

namespace stoker::train {

/// Views of the batch, which must outlive them and autograd's references.
struct BatchTensors {
  at::Tensor input;   ///< model input; NHWC images have shape N x 3 x H x W with matching strides
  at::Tensor labels;  ///< int64, contiguous; one per token for token models
};

/// Form of a training's batches.
struct BatchForm {
  Input input = Input::images;
  std::size_t columns = 0;      ///< fields per sample for a model of numbers; 0: arrays
  std::int64_t vocabulary = 0;  ///< for a model of tokens
};

/// Invalid "token 300 is outside the vocabulary (train.classes: 256)". REQUIRES: the loader has the options
/// of training_loader or validation_loader for this training.
Result<BatchTensors> tensors_of(loader::Batch& batch, const BatchForm& form);

/// N x classes for any shape of logits; float32 and contiguous.
at::Tensor rows_of(const at::Tensor& logits);

/// Elements of a contiguous tensor, which must outlive the span.
std::span<const float> scores_of(const at::Tensor& rows);
std::span<const std::int64_t> labels_of(const at::Tensor& labels);

}  // namespace stoker::train
