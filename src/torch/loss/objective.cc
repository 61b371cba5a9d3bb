#include "torch/loss/objective.h"

#include <span>
#include <utility>
#include <vector>

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/roll.h>

#include "data/transform/mix.h"

namespace stoker::torch {

namespace {

// How the images lie in memory. REQUIRES: they lie there without gaps.
data::BatchShape shape_of(const at::Tensor& images) {
  return {.samples = static_cast<std::size_t>(images.size(0)),
          .width = static_cast<std::uint32_t>(images.size(3)),
          .height = static_cast<std::uint32_t>(images.size(2)),
          .layout = images.is_contiguous() ? data::Layout::nchw : data::Layout::nhwc};
}

}  // namespace

Status mix(const at::Tensor& images, Targets& targets, const MixOptions& options, std::uint64_t random) {
  std::vector<data::MixOptions> kinds;
  if (options.mixup > 0) kinds.push_back({data::MixKind::mixup, options.mixup});
  if (options.cutmix > 0) kinds.push_back({data::MixKind::cutmix, options.cutmix});
  if (kinds.empty()) return {};
  const data::Occasion occasion{.seed = random};
  const data::BatchShape shape = shape_of(images);
  const data::MixOptions& kind = data::choose_mix(kinds, occasion);
  OK_OR_RETURN(drawn, data::draw_mix(kind, occasion, shape));
  const std::span<float> values(images.mutable_data_ptr<float>(), static_cast<std::size_t>(images.numel()));
  RETURN_IF_ERROR(data::apply_mix(kind.kind, drawn, shape, std::as_writable_bytes(values)));
  targets.others = at::roll(targets.labels, 1, 0);
  targets.share = drawn.share;
  if (targets.share < 0.5) {
    std::swap(targets.labels, targets.others);
    targets.share = 1 - targets.share;
  }
  return {};
}

at::Tensor training_loss(const at::Tensor& logits, const Targets& targets, double smoothing) {
  const auto loss_of = [&](const at::Tensor& labels) {
    return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Mean, -100, smoothing);
  };
  if (!targets.others.defined()) return loss_of(targets.labels);
  return loss_of(targets.labels).mul(targets.share).add(loss_of(targets.others).mul(1 - targets.share));
}

}  // namespace stoker::torch
