// The loader's memory as tensors, without copying. Used by training and validation.
#pragma once

#include <span>

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include "data/loader.h"

namespace stoker::torch {

/// Views the batch, which must outlive it and everything autograd keeps of it.
struct BatchTensors {
  at::Tensor images;
  at::Tensor labels;

  BatchTensors(data::Batch& batch, std::int64_t size)
      : images(at::from_blob(batch.images().data(), {batch.count(), 3, size, size}, at::kFloat)),
        labels(at::from_blob(batch.labels().data(), {batch.count()}, at::kLong)) {}
};

/// The elements of a contiguous float tensor, which must outlive the span.
inline std::span<const float> scores_of(const at::Tensor& logits) {
  return {logits.const_data_ptr<float>(), static_cast<std::size_t>(logits.numel())};
}

}  // namespace stoker::torch
