#include <algorithm>

#include "image/transform/kernels/kernels.h"

namespace stoker::image {
namespace {

constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

// The two weights of a pair, from its upper and lower halves.
struct Pair {
  std::int32_t first;
  std::int32_t second;
};
Pair join(std::int32_t upper, std::int32_t lower) {
  const auto low16 = [](std::int32_t v) {
    return static_cast<std::int32_t>(static_cast<std::int16_t>(v & 0xFFFF));
  };
  constexpr std::int32_t kOne = 1 << kWeightSplit;
  return {low16(upper) * kOne + low16(lower), (upper >> 16) * kOne + (lower >> 16)};
}

void horizontal_row(const HorizontalPlan& plan, const std::uint8_t* from, std::uint8_t* to) {
  const std::int32_t* weights = plan.weights.data();
  for (const std::uint32_t first : plan.first) {
    std::int32_t sum[3] = {kHalf, kHalf, kHalf};
    const std::uint8_t* pixel = from + std::size_t{3} * first;
    for (std::size_t group = 0; group < plan.groups; ++group, weights += 4) {
      for (const Pair& pair : {join(weights[0], weights[2]), join(weights[1], weights[3])}) {
        for (int c = 0; c < 3; ++c) sum[c] += pixel[c] * pair.first + pixel[3 + c] * pair.second;
        pixel += 6;
      }
    }
    for (int c = 0; c < 3; ++c) *to++ = to_byte(sum[c]);
  }
}

void horizontal(const HorizontalPlan& plan, const SourceRows& from, const TargetRows& to) {
  for (std::size_t i = 0; i < kRowsAtOnce; ++i) horizontal_row(plan, from[i], to[i]);
}

void vertical(const VerticalPlan& plan, std::size_t bytes, std::uint8_t* out) {
  constexpr std::size_t kAtOnce = 256;
  std::int32_t sums[kAtOnce];
  for (std::size_t begin = 0; begin < bytes; begin += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, bytes - begin);
    std::fill_n(sums, count, kHalf);
    for (std::size_t i = 0; i < plan.pairs; ++i) {
      const Pair pair = join(plan.weights[2 * i], plan.weights[2 * i + 1]);
      const std::uint8_t* a = plan.rows[2 * i] + begin;
      const std::uint8_t* b = plan.rows[2 * i + 1] + begin;
      for (std::size_t k = 0; k < count; ++k) sums[k] += a[k] * pair.first + b[k] * pair.second;
    }
    std::transform(sums, sums + count, out + begin, to_byte);
  }
}

// SampleWriter uses its table instead.
std::size_t write(DType, const std::uint8_t*, const Normalization&, const PixelRun&) { return 0; }

// The caller scans byte by byte instead.
std::size_t skip_scan(const std::uint8_t*, std::size_t begin, std::size_t) { return begin; }

}  // namespace

const Kernels& plain_kernels() {
  static constexpr Kernels kernels{"plain", horizontal, vertical, write, skip_scan};
  return kernels;
}

}  // namespace stoker::image
