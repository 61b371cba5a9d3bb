// The loader's memory as tensors, copied only where a model wants other numbers. Used by training and
// validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "base/status.h"
#include "data/loader.h"
#include "torch/models/model.h"

namespace stoker::torch {

/// Views the batch, which must outlive it and everything autograd keeps of it.
struct BatchTensors {
  at::Tensor input;   ///< what the model takes; images in NHWC as N x 3 x H x W with such strides
  at::Tensor labels;  ///< int64, contiguous; of tokens one for each of a sequence
};

/// What the batches of a training are.
struct BatchForm {
  Input input = Input::images;
  std::size_t columns = 0;      ///< fields of each sample for a model of numbers; 0: they are arrays
  std::int64_t vocabulary = 0;  ///< of a model of tokens
};

/// Invalid "token 300 is outside the vocabulary (train.classes: 256)". REQUIRES: the loader was opened with
/// the options of training_loader or validation_loader for the same training.
Result<BatchTensors> tensors_of(data::Batch& batch, const BatchForm& form);

/// N x classes, whatever the model's logits look like; float32 and contiguous.
at::Tensor rows_of(const at::Tensor& logits);

/// The elements of contiguous tensors, which must outlive the span.
std::span<const float> scores_of(const at::Tensor& rows);
std::span<const std::int64_t> labels_of(const at::Tensor& labels);

}  // namespace stoker::torch
