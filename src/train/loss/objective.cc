#include "train/loss/objective.h"

#include <span>
#include <utility>
#include <vector>

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/roll.h>

#include "image/transform/mix.h"

namespace stoker::train {

namespace {

// Memory layout of the images. REQUIRES: they are contiguous.
image::BatchShape shape_of(const at::Tensor& images) {
  return {.samples = static_cast<std::size_t>(images.size(0)),
          .width = static_cast<std::uint32_t>(images.size(3)),
          .height = static_cast<std::uint32_t>(images.size(2)),
          .layout = images.is_contiguous() ? image::ImageLayout::nchw : image::ImageLayout::nhwc};
}

}  // namespace

void mix_on_device(const at::Tensor& images, image::MixKind kind, const image::Mix& drawn) {
  const at::Tensor partners = at::roll(images, 1, 0);
  if (kind == image::MixKind::mixup) {
    images.mul_(drawn.share).add_(partners, 1 - drawn.share);
    return;
  }
  const auto box_of = [&](const at::Tensor& all) {
    return all.slice(2, drawn.box.y, drawn.box.y + drawn.box.height)
        .slice(3, drawn.box.x, drawn.box.x + drawn.box.width);
  };
  box_of(images).copy_(box_of(partners));
}

Status mix(const at::Tensor& images, MixedTargets& targets, const MixupOptions& options,
           std::uint64_t random) {
  std::vector<image::MixOptions> kinds;
  if (options.mixup > 0) kinds.push_back({image::MixKind::mixup, options.mixup});
  if (options.cutmix > 0) kinds.push_back({image::MixKind::cutmix, options.cutmix});
  if (kinds.empty()) return {};
  const image::SampleKey sample_key{.seed = random};
  const image::BatchShape shape = shape_of(images);
  const image::MixOptions& kind = image::choose_mix(kinds, sample_key);
  STOKER_ASSIGN_OR_RETURN(drawn, image::draw_mix(kind, sample_key, shape));
  if (images.is_cpu()) {
    const std::span<float> values(images.mutable_data_ptr<float>(), static_cast<std::size_t>(images.numel()));
    STOKER_RETURN_IF_ERROR(image::apply_mix(kind.kind, drawn, shape, std::as_writable_bytes(values)));
  } else {
    mix_on_device(images, kind.kind, drawn);
  }
  targets.second_labels = at::roll(targets.labels, 1, 0);
  targets.share = drawn.share;
  if (targets.share < 0.5) {
    std::swap(targets.labels, targets.second_labels);
    targets.share = 1 - targets.share;
  }
  return {};
}

at::Tensor training_loss(const at::Tensor& logits, const MixedTargets& targets, double smoothing) {
  const auto loss_of = [&](const at::Tensor& labels) {
    return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Mean, -100, smoothing);
  };
  if (!targets.second_labels.defined()) return loss_of(targets.labels);
  return loss_of(targets.labels)
      .mul(targets.share)
      .add(loss_of(targets.second_labels).mul(1 - targets.share));
}

}  // namespace stoker::train
