// Batch norm with statistics over the batches of all ranks. Ranks may have batches of different sizes, also
// none. Works on CPU, where PyTorch's SyncBatchNorm fails. Used by the built-in models and, through
// sync_batch_norm(), by user modules. One thread of one rank.
//
// Each forward and each backward pass of such a layer is a collective: all ranks must run the same layers in
// the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include "stoker/process_group.h"

namespace stoker::train {

/// Tensors of one layer, shared with the model, and its constants.
struct BatchNormTensors {
  at::Tensor weight, bias, running_mean, running_var;
  double momentum = 0.1;
  double epsilon = 1e-5;
};

/// Normalizes `input` (N x C x ...) in training and updates the running statistics, equally on all ranks.
/// Collective. Throws exceptions of libtorch and of collectives. `group` must outlive the backward pass.
at::Tensor sync_batch_norm(ProcessGroup& group, const at::Tensor& input, const BatchNormTensors& norm);

/// The forward pass of a torch::nn::BatchNorm1d, 2d or 3d: synchronized in training, otherwise the layer's
/// own. In a module's forward, replace `x = norm(x);` by `x = sync_batch_norm(group, norm, x);`.
template <typename Layer>
at::Tensor sync_batch_norm(ProcessGroup& group, Layer& layer, const at::Tensor& input) {
  if (!layer->is_training() || group.world_size().value == 1) return layer->forward(input);
  if (layer->num_batches_tracked.defined()) layer->num_batches_tracked.add_(1);
  return sync_batch_norm(group, input,
                         {layer->weight, layer->bias, layer->running_mean, layer->running_var,
                          layer->options.momentum().value_or(0.1), layer->options.eps()});
}

/// While it exists, batch norm of the built-in models on this thread is synchronized over `group`; null
/// changes nothing. Used for DataParallelOptions::batch_norm_sync.
class SyncBatchNormScope {
 public:
  explicit SyncBatchNormScope(ProcessGroup* group);
  ~SyncBatchNormScope();
  SyncBatchNormScope(const SyncBatchNormScope&) = delete;
  SyncBatchNormScope& operator=(const SyncBatchNormScope&) = delete;
  /// The group of this thread; null without synchronization.
  static ProcessGroup* group();

 private:
  ProcessGroup* const before_;
};

}  // namespace stoker::train
