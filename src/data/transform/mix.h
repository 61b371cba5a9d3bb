// Mixing the samples of a finished batch with each other, as torchvision.transforms.v2.MixUp and CutMix:
// sample i with sample i - 1, the first with the last. How is a pure function of (seed, epoch, number of the
// batch). Used by the loader and by trainers. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/tensor_view.h"
#include "data/decode/image.h"
#include "data/transform/transform.h"

namespace stoker::data {

enum class MixKind {
  mixup,   ///< each value is share x its own + (1 - share) x the partner's
  cutmix,  ///< one rectangle, the same in all samples, is the partner's
};

struct MixOptions {
  MixKind kind = MixKind::mixup;
  double alpha = 1;  ///< the share is drawn from Beta(alpha, alpha); 0.05 to 100
};

/// What a batch is made of.
struct BatchShape {
  std::size_t samples = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  DType element = DType::f32;
  Layout layout = Layout::nchw;
};

/// What was done to a batch.
struct Mix {
  double share = 1;  ///< what a sample's own label counts; the partner's counts 1 - share
  Region box;        ///< of cutmix; may be empty
};

/// Which of several kinds a batch is mixed in: each as likely as the others. REQUIRES: there is one.
const MixOptions& choose_mix(std::span<const MixOptions> kinds, const Occasion& occasion);
/// Draws share and box. `occasion.sample` is the number of the batch. Fails with Invalid when alpha is out of
/// range.
Result<Mix> draw_mix(const MixOptions& options, const Occasion& occasion, const BatchShape& shape);
/// Invalid for mixup, unless the elements are f32.
Status can_mix(MixKind kind, const BatchShape& shape);
/// Mixes in place. Fails as can_mix(). REQUIRES: `batch` holds `shape`.
Status apply_mix(MixKind kind, const Mix& mix, const BatchShape& shape, std::span<std::byte> batch);

}  // namespace stoker::data
