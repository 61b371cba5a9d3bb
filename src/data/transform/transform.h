// What happens to an image between decoding and the model: crop, flip, normalisation to float32 planes. The
// random part is a pure function of (seed, epoch, sample), so it is the same on any thread, rank and attempt.
// Used by the loader's worker threads; each has its own Transform.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "data/decode/image.h"
#include "data/transform/randomness.h"
#include "data/transform/resize.h"

namespace stoker::data {

/// Which part of the image the model sees.
enum class Crop {
  centre,  ///< shorter side resized to `resize`, then the middle; nothing random
  padded,  ///< black borders of `padding` pixels, then a random place (torchvision RandomCrop(padding=))
  scaled,  ///< a random area of 8 to 100 % and aspect of 3/4 to 4/3, resized (torchvision RandomResizedCrop)
};

struct TransformOptions {
  std::uint32_t size = 0;  ///< the model sees size x size
  Crop crop = Crop::centre;
  std::uint32_t padding = 0;                ///< for Crop::padded
  std::uint32_t resize = 0;                 ///< for Crop::centre; at least `size`
  bool flip = false;                        ///< mirrored left to right with probability 1/2
  std::array<float, 3> mean{0, 0, 0};       ///< of values in 0..1, per channel
  std::array<float, 3> deviation{1, 1, 1};  ///< standard deviation, likewise
};

/// Applies one set of options; keeps scratch memory between images. Thread-compatible.
class Transform {
 public:
  /// Fails with Invalid on a size of 0 or over 16384, a resize below the size, or a deviation that is not
  /// positive.
  static Result<Transform> create(const TransformOptions& options);

  /// Floats of one transformed image: 3 x size x size.
  std::size_t output_size() const { return 3 * static_cast<std::size_t>(options_.size) * options_.size; }
  /// Writes the image as three planes (red, green, blue): (value / 255 - mean) / deviation, each operation
  /// rounded to float32 as in torchvision's ToTensor and Normalize. Fails with Invalid when a padded crop
  /// does not fit the image. REQUIRES: out.size() == output_size().
  Status apply(const ImageView& image, const Occasion& occasion, std::span<float> out);

 private:
  explicit Transform(const TransformOptions& options);
  Status apply_centre(const ImageView& image, Dice& dice, std::span<float> out);
  Status apply_padded(const ImageView& image, Dice& dice, std::span<float> out);
  void apply_scaled(const ImageView& image, Dice& dice, std::span<float> out);
  bool flips(Dice& dice) const;

  TransformOptions options_;
  std::array<std::array<float, 256>, 3> levels_;  // the normalised value of each byte, per channel
  Resizer resizer_;
};

}  // namespace stoker::data
