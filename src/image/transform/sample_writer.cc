#include "image/transform/sample_writer.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace stoker::image {

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00u);
  const float magnitude = std::abs(value);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7C00u);
  // Below the smallest normal number the spacing is 2^-24: adding 0.5 rounds to it, to even.
  if (magnitude < 0x1p-14f) {
    const float shifted = magnitude + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
  }
  const auto rest = std::bit_cast<std::uint32_t>(magnitude);
  const std::uint32_t rounded = rest + 0xFFFu + (rest >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

SampleWriter::SampleWriter(const SampleForm& form, const Normalization& formula, const Kernels& kernels)
    : form_(form), formula_(formula), kernels_(kernels) {
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t value = 0; value < 256; ++value) {
      const float unit = static_cast<float>(value) / 255.0f;
      const float level = (unit - formula.mean[c]) / formula.deviation[c];
      levels32_[c][value] = level;
      levels16_[c][value] = form.element == DType::bf16 ? to_bf16(level) : to_f16(level);
      levels8_[c][value] = static_cast<std::uint8_t>(value);
    }
  }
  has_kernel_ = kernel_is_exact();
}

// Whether the kernel matches the table for every byte and colour.
bool SampleWriter::kernel_is_exact() const {
  if (form_.element == DType::u8) return false;
  std::array<std::uint8_t, 3 * 256> rgb{};
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(i / 3);
  std::array<std::array<float, 256>, 3> found{};
  const PixelRun run{.planes = {&found[0], &found[1], &found[2]}, .count = 256};
  if (kernels_.write(form_.element, rgb.data(), formula_, run) != 256) return false;
  const bool is_wide = form_.element == DType::f32;
  for (std::size_t c = 0; c < 3; ++c) {
    const void* expected = is_wide ? static_cast<const void*>(&levels32_[c]) : &levels16_[c];
    if (std::memcmp(&found[c], expected, 256 * size_of(form_.element)) != 0) return false;
  }
  return true;
}

template <typename T>
void SampleWriter::write_as(const std::array<std::array<T, 256>, 3>& levels, std::uint32_t y,
                            const SampleRow& row, T* out) const {
  const std::size_t plane = std::size_t{form_.width} * form_.height;
  const bool is_interleaved = form_.layout == ImageLayout::nhwc;
  const std::size_t step = is_interleaved ? 3 : 1;
  std::array<T*, 3> begin;  // of the row, per colour
  for (std::size_t c = 0; c < 3; ++c)
    begin[c] = is_interleaved ? out + std::size_t{3} * y * form_.width + c
                              : out + c * plane + std::size_t{y} * form_.width;
  std::uint32_t done = 0;
  if (has_kernel_) {
    const std::uint32_t first = row.is_flipped ? form_.width - row.first - row.count : row.first;
    PixelRun run{.count = row.count, .is_interleaved = is_interleaved, .is_flipped = row.is_flipped};
    for (std::size_t c = 0; c < 3; ++c) run.planes[c] = begin[c] + step * first;
    done = static_cast<std::uint32_t>(kernels_.write(form_.element, row.pixels, formula_, run));
  }
  for (std::size_t c = 0; c < 3; ++c) {
    const auto place = [&](std::uint32_t x) -> T& {
      return begin[c][step * (row.is_flipped ? form_.width - 1 - x : x)];
    };
    const T fill = levels[c][row.fill[c]];
    for (std::uint32_t x = 0; x < row.first; ++x) place(x) = fill;
    for (std::uint32_t i = done; i < row.count; ++i) place(row.first + i) = levels[c][row.pixels[3 * i + c]];
    for (std::uint32_t x = row.first + row.count; x < form_.width; ++x) place(x) = fill;
  }
}

void SampleWriter::write(std::uint32_t y, const SampleRow& row, std::span<std::byte> out) const {
  switch (form_.element) {
    case DType::f32:
      return write_as(levels32_, y, row, reinterpret_cast<float*>(out.data()));
    case DType::bf16:
    case DType::f16:
      return write_as(levels16_, y, row, reinterpret_cast<std::uint16_t*>(out.data()));
    default:
      return write_as(levels8_, y, row, reinterpret_cast<std::uint8_t*>(out.data()));
  }
}

}  // namespace stoker::image
