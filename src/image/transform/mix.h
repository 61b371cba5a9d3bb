// Mixes the samples of a finished batch, like torchvision.transforms.v2.MixUp and CutMix: sample i with
// sample i - 1, the first with the last. The mix is a pure function of (seed, epoch, number of the batch).
// Used by the loader and by trainers. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "image/decode/image.h"
#include "image/transform/philox.h"
#include "stoker/status.h"
#include "stoker/tensor_view.h"
#include "stoker/transform_options.h"

namespace stoker::image {

/// The shape and type of a batch.
struct BatchShape {
  std::size_t samples = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  DType element = DType::f32;
  ImageLayout layout = ImageLayout::nchw;
};

/// How a batch is mixed.
struct Mix {
  double share = 1;  ///< weight of a sample's label; the partner's has weight 1 - share
  ImageRegion box;   ///< of cutmix; may be empty
};

/// Chooses one of several kinds for a batch, with equal probability. REQUIRES: kinds is not empty.
const MixOptions& choose_mix(std::span<const MixOptions> kinds, const SampleKey& sample_key);
/// Draws share and box. `sample_key.sample` is the number of the batch. Fails with Invalid when alpha is out
/// of range.
Result<Mix> draw_mix(const MixOptions& options, const SampleKey& sample_key, const BatchShape& shape);
/// Invalid for mixup, unless the elements are f32.
Status can_mix(MixKind kind, const BatchShape& shape);
/// Mixes in place. Fails as can_mix(). REQUIRES: `batch` holds `shape`.
Status apply_mix(MixKind kind, const Mix& mix, const BatchShape& shape, std::span<std::byte> batch);

}  // namespace stoker::image
