// Batch norm whose statistics are those of the batches of all ranks together, as if one process had the whole
// batch; ranks may have batches of different sizes, also none. On the CPU too, where PyTorch's SyncBatchNorm
// refuses. Used by our models, and by anybody's module through sync_batch_norm(). One thread of one rank.
//
// Each forward pass of such a layer is a collective, and each backward pass through it another one: all ranks
// must pass through the same layers in the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include "torch/process_group.h"

namespace stoker::torch {

/// The tensors of one layer, shared with the model, and its constants.
struct BatchNormTensors {
  at::Tensor weight, bias, running_mean, running_var;
  double momentum = 0.1;
  double epsilon = 1e-5;
};

/// Normalizes `input` (N x C x ...) in training, and moves the running statistics, equally on all ranks.
/// Collective. Throws what libtorch and collectives throw. `group` must outlive the backward pass.
at::Tensor sync_batch_norm(ProcessGroup& group, const at::Tensor& input, const BatchNormTensors& norm);

/// The forward pass of a torch::nn::BatchNorm1d, 2d or 3d over all ranks: in training synchronized, else what
/// the layer itself does. In a module's forward: `x = sync_batch_norm(group, norm, x);` instead of `x =
/// norm(x);`.
template <typename Layer>
at::Tensor sync_batch_norm(ProcessGroup& group, Layer& layer, const at::Tensor& input) {
  if (!layer->is_training() || group.world_size().value == 1) return layer->forward(input);
  if (layer->num_batches_tracked.defined()) layer->num_batches_tracked.add_(1);
  return sync_batch_norm(group, input,
                         {layer->weight, layer->bias, layer->running_mean, layer->running_var,
                          layer->options.momentum().value_or(0.1), layer->options.eps()});
}

/// While one lives, batch norm of our models in this thread is synchronized over `group`; over none, as it
/// was. What DataParallelOptions::statistics asks for.
class SyncBatchNorm {
 public:
  explicit SyncBatchNorm(ProcessGroup* group);
  ~SyncBatchNorm();
  SyncBatchNorm(const SyncBatchNorm&) = delete;
  SyncBatchNorm& operator=(const SyncBatchNorm&) = delete;
  /// Of this thread; null where batch norm is a rank's own.
  static ProcessGroup* group();

 private:
  ProcessGroup* const before_;
};

}  // namespace stoker::torch
