#include "stoker/sync_batch_norm.h"

#include <array>
#include <tuple>
#include <utility>

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "train/comm/c10d_internal.h"

namespace stoker::train {

namespace {

thread_local ProcessGroup* current = nullptr;

std::vector<std::int64_t> all_but_channels(const at::Tensor& input) {
  std::vector<std::int64_t> dimensions;
  for (std::int64_t i = 0; i < input.dim(); ++i) {
    if (i != 1) dimensions.push_back(i);
  }
  return dimensions;
}

// Reshapes C values to broadcast over N x C x ...
at::Tensor per_channel(const at::Tensor& values, const at::Tensor& like) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape[1] = values.numel();
  return values.to(like.scalar_type()).reshape(shape);
}

// Its exception names the missing rank, and the surrounding pass reports it.
void sum_over_ranks(ProcessGroup& group, const at::Tensor& values) {
  if (group.world_size().value == 1) return;
  std::vector<at::Tensor> tensors{values};
  group.objects()->group->allreduce(tensors)->wait();
}

struct Moments {
  at::Tensor mean, variance;  ///< of the whole batch, float64
  at::Tensor count;           ///< values per channel in it, without dimensions
};

// One all-reduce of count, sum and sum of squares. In float64 the subtraction of the squared mean loses
// nothing that float32 could represent.
Moments global_moments(ProcessGroup& group, const at::Tensor& input) {
  const std::int64_t channels = input.size(1);
  const double own = channels == 0 ? 0 : static_cast<double>(input.numel() / channels);
  at::Tensor sums = at::zeros({2 * channels + 1}, input.options().dtype(at::kDouble));
  if (own > 0) {
    const auto [variance, mean] =
        at::var_mean(input.to(at::kFloat), all_but_channels(input), std::optional<at::Scalar>(0));
    const at::Tensor wide = mean.to(at::kDouble);
    sums.slice(0, 0, channels).copy_(wide * own);
    sums.slice(0, channels, 2 * channels).copy_((variance.to(at::kDouble) + wide * wide) * own);
    sums.slice(0, 2 * channels).fill_(own);
  }
  sum_over_ranks(group, sums);
  const at::Tensor count = sums[2 * channels];
  // Only then does the sum have to be known on the host.
  TORCH_CHECK(own > 1 || count.item<double>() > 1,
              "synchronized batch norm: expected more than one value per channel over all ranks, found ",
              count.item<double>());
  const at::Tensor mean = sums.slice(0, 0, channels) / count;
  const at::Tensor variance = (sums.slice(0, channels, 2 * channels) / count - mean * mean).clamp_min_(0);
  return {mean, variance, count};
}

void update_running_stats(const BatchNormTensors& norm, const Moments& found) {
  if (!norm.running_mean.defined()) return;
  const at::Tensor unbiased = found.variance * (found.count / (found.count - 1));
  norm.running_mean.mul_(1 - norm.momentum)
      .add_(found.mean.to(norm.running_mean.scalar_type()), norm.momentum);
  norm.running_var.mul_(1 - norm.momentum).add_(unbiased.to(norm.running_var.scalar_type()), norm.momentum);
}

struct SyncLayer {
  const BatchNormTensors& norm;
  ProcessGroup& group;
};

// libtorch requires these names: forward, backward.
struct Normalize : ::torch::autograd::Function<Normalize> {
  using Context = ::torch::autograd::AutogradContext;

  static at::Tensor forward(Context* context, const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& bias, const SyncLayer& layer) {
    const Moments found = global_moments(layer.group, input);
    update_running_stats(layer.norm, found);
    const at::Tensor mean = found.mean.to(weight.scalar_type());
    const at::Tensor variance = found.variance.to(weight.scalar_type());
    context->save_for_backward({input, weight, mean, variance, found.count});
    context->saved_data["group"] = reinterpret_cast<std::int64_t>(&layer.group);
    context->saved_data["epsilon"] = layer.norm.epsilon;
    // With given statistics: the evaluation kernel.
    return at::batch_norm(input, weight, bias, mean, variance, /*training=*/false, 0, layer.norm.epsilon,
                          false);
  }

  static ::torch::autograd::variable_list backward(Context* context,
                                                   const ::torch::autograd::variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &weight = saved[1], &mean = saved[2], &variance = saved[3];
    auto* group = reinterpret_cast<ProcessGroup*>(context->saved_data["group"].toInt());
    const double epsilon = context->saved_data["epsilon"].toDouble();
    const at::Tensor gradient = outputs[0].contiguous(input.suggest_memory_format());

    // The sums for the gradients of weight and bias of this rank's batch; DataParallel averages them. Summed
    // over all ranks they enter the gradient of the input.
    at::Tensor for_weight = at::zeros_like(weight), for_bias = at::zeros_like(weight);
    if (input.numel() > 0) {  // the kernel divides by it
      std::tie(std::ignore, for_weight, for_bias) =
          at::native_batch_norm_backward(gradient, input, weight, mean, variance, mean, variance,
                                         /*train=*/false, epsilon, std::array<bool, 3>{false, true, true});
    }
    at::Tensor for_input;
    if (context->needs_input_grad(0)) {
      at::Tensor sums = at::cat({for_weight, for_bias}).to(at::kDouble);
      sum_over_ranks(*group, sums);
      sums.div_(saved[4]);
      const std::int64_t channels = weight.numel();
      const at::Tensor inverse = (variance.to(at::kDouble) + epsilon).rsqrt();
      const at::Tensor scale = weight.to(at::kDouble) * inverse;
      // scale * (gradient - its mean - normalized input * mean of their product)
      const at::Tensor slope = -scale * inverse * sums.slice(0, 0, channels);
      for_input = (input - per_channel(mean, input)).mul_(per_channel(slope, input));
      for_input.sub_(per_channel(scale * sums.slice(0, channels), input));
      for_input.addcmul_(gradient, per_channel(scale, input));
    }
    return {for_input, for_weight, for_bias, at::Tensor()};
  }
};

}  // namespace

at::Tensor sync_batch_norm(ProcessGroup& group, const at::Tensor& input, const BatchNormTensors& norm) {
  TORCH_CHECK(input.dim() >= 2, "synchronized batch norm: expected an input of shape N x C x ..., got ",
              input.dim(), " dimensions");
  return Normalize::apply(input, norm.weight, norm.bias, SyncLayer{norm, group});
}

SyncBatchNormScope::SyncBatchNormScope(ProcessGroup* group) : before_(current) {
  if (group != nullptr) current = group;
}
SyncBatchNormScope::~SyncBatchNormScope() { current = before_; }
ProcessGroup* SyncBatchNormScope::group() { return current; }

}  // namespace stoker::train
