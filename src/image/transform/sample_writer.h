// The last step of a transform: writes rows of 8-bit RGB as normalised numbers into the batch, in its
// element type and layout. Used by Transform and Canvas. Immutable, thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "image/transform/kernels/kernels.h"
#include "image/transform/transform.h"
#include "stoker/tensor_view.h"

namespace stoker::image {

/// One row of a sample: `count` pixels from column `first` on, the colour `fill` elsewhere; then the whole
/// row is mirrored if is_flipped.
struct SampleRow {
  const std::uint8_t* pixels = nullptr;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::array<std::uint8_t, 3> fill{0, 0, 0};
  bool is_flipped = false;
};

/// The layout of a sample in its batch.
struct SampleForm {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  DType element = DType::f32;
  ImageLayout layout = ImageLayout::nchw;
};

class SampleWriter {
 public:
  /// Writes values of `formula`, each operation rounded to float32. REQUIRES: form.element is f32, bf16, f16
  /// or u8; for u8 the formula is ignored. All kernels compute the same values.
  SampleWriter(const SampleForm& form, const Normalization& formula, const Kernels& kernels = best_kernels());

  const SampleForm& form() const { return form_; }
  /// Whether the SIMD kernel computes every value exactly; if not, a table is used.
  bool has_kernel() const { return has_kernel_; }
  /// Writes row `y` of the sample. REQUIRES: out holds 3 x width x height elements and is aligned to them.
  void write(std::uint32_t y, const SampleRow& row, std::span<std::byte> out) const;

 private:
  bool kernel_is_exact() const;
  template <typename T>
  void write_as(const std::array<std::array<T, 256>, 3>& levels, std::uint32_t y, const SampleRow& row,
                T* out) const;

  SampleForm form_;
  Normalization formula_;
  const Kernels& kernels_;
  bool has_kernel_ = false;
  // The result for each byte, per channel; 16-bit floats as their bits.
  std::array<std::array<float, 256>, 3> levels32_;
  std::array<std::array<std::uint16_t, 256>, 3> levels16_;
  std::array<std::array<std::uint8_t, 256>, 3> levels8_;
};

/// Bits of the bfloat16 and of the IEEE half nearest to `value`, ties to even.
std::uint16_t to_bf16(float value);
std::uint16_t to_f16(float value);

}  // namespace stoker::image
