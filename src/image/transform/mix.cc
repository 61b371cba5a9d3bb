#include "image/transform/mix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "image/transform/portable_math.h"

namespace stoker::image {
namespace {

// The random numbers of a batch must differ from the numbers of the sample with the same index.
constexpr std::uint64_t kPurposeBatches = 0x6D69785F6D69785Full;
constexpr std::uint64_t kPurposeKinds = 0x6B696E645F6D6978ull;

// Above 0 and below 1.
double positive(PhiloxStream& rng) { return (rng.next() + 0.5) * 0x1p-32; }

// Marsaglia's polar method.
double normal(PhiloxStream& rng) {
  for (;;) {
    const double x = 2 * positive(rng) - 1;
    const double y = 2 * positive(rng) - 1;
    const double square = x * x + y * y;
    if (square < 1 && square > 0) return x * std::sqrt(-2 * portable_log(square) / square);
  }
}

// Marsaglia and Tsang, ACM TOMS 26 (2000); a shape below 1 is computed from shape + 1.
double gamma(double shape, PhiloxStream& rng) {
  if (shape < 1) return gamma(shape + 1, rng) * portable_exp(portable_log(positive(rng)) / shape);
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(rng);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (portable_log(positive(rng)) < 0.5 * x * x + d - d * v + d * portable_log(v)) return d * v;
  }
}

ImageRegion draw_box(double share, const BatchShape& shape, PhiloxStream& rng) {
  const auto span_of = [&](std::uint32_t side, std::uint32_t middle) {
    const auto half = static_cast<std::uint32_t>(0.5 * std::sqrt(1 - share) * side);
    const std::uint32_t begin = middle - std::min(middle, half);
    return std::pair(begin, std::min(side, middle + half) - begin);
  };
  const auto [x, width] = span_of(shape.width, rng.below(shape.width));
  const auto [y, height] = span_of(shape.height, rng.below(shape.height));
  return {x, y, width, height};
}

void mix_up(double share, std::size_t values, std::size_t samples, float* batch) {
  const auto own = static_cast<float>(share);
  const auto other = static_cast<float>(1 - share);
  const std::vector<float> last(batch + (samples - 1) * values, batch + samples * values);
  for (std::size_t sample = samples; sample-- > 0;) {
    float* to = batch + sample * values;
    const float* partner = sample > 0 ? to - values : last.data();
    for (std::size_t i = 0; i < values; ++i) to[i] = partner[i] * other + to[i] * own;
  }
}

void cut_mix(const ImageRegion& box, const BatchShape& shape, std::byte* batch) {
  const bool is_planar = shape.layout == ImageLayout::nchw;
  const std::size_t pixel = size_of(shape.element) * (is_planar ? 1 : 3);
  const std::size_t planes = is_planar ? 3 : 1;
  const std::size_t row = pixel * shape.width;
  const std::size_t sample_bytes = planes * row * shape.height;
  std::byte* const last_row = batch + (shape.samples - 1) * sample_bytes;
  std::vector<std::byte> last(pixel * box.width);
  for (std::size_t line = 0; line < planes * box.height; ++line) {
    const std::size_t y = line / box.height * shape.height + box.y + line % box.height;
    const std::size_t at = y * row + box.x * pixel;
    std::memcpy(last.data(), last_row + at, last.size());
    for (std::size_t sample = shape.samples; sample-- > 1;)
      std::memcpy(batch + sample * sample_bytes + at, batch + (sample - 1) * sample_bytes + at, last.size());
    std::memcpy(batch + at, last.data(), last.size());
  }
}

}  // namespace

const MixOptions& choose_mix(std::span<const MixOptions> kinds, const SampleKey& sample_key) {
  PhiloxStream rng({sample_key.seed ^ kPurposeKinds, sample_key.epoch, sample_key.sample});
  return kinds[rng.below(static_cast<std::uint32_t>(kinds.size()))];
}

Result<Mix> draw_mix(const MixOptions& options, const SampleKey& sample_key, const BatchShape& shape) {
  if (!(options.alpha >= 0.05 && options.alpha <= 100)) {
    return invalid("{}: alpha {} is not between 0.05 and 100",
                   options.kind == MixKind::mixup ? "mixup" : "cutmix", options.alpha);
  }
  PhiloxStream rng({sample_key.seed ^ kPurposeBatches, sample_key.epoch, sample_key.sample});
  const double a = gamma(options.alpha, rng);
  const double b = gamma(options.alpha, rng);
  Mix mix;
  mix.share = a + b > 0 ? a / (a + b) : 1;
  if (options.kind == MixKind::mixup) return mix;
  mix.box = draw_box(mix.share, shape, rng);
  const double part = static_cast<double>(mix.box.width) * mix.box.height;
  mix.share = 1 - part / (static_cast<double>(shape.width) * shape.height);
  return mix;
}

Status can_mix(MixKind kind, const BatchShape& shape) {
  if (kind == MixKind::cutmix || shape.element == DType::f32) return Status();
  return invalid("mixup: batches of {} are not supported (F32 is)", to_text(shape.element));
}

Status apply_mix(MixKind kind, const Mix& mix, const BatchShape& shape, std::span<std::byte> batch) {
  STOKER_RETURN_IF_ERROR(can_mix(kind, shape));
  if (shape.samples < 2) return Status();
  const std::size_t values = std::size_t{3} * shape.width * shape.height;
  if (kind == MixKind::cutmix) {
    cut_mix(mix.box, shape, batch.data());
    return Status();
  }
  mix_up(mix.share, values, shape.samples, reinterpret_cast<float*>(batch.data()));
  return Status();
}

}  // namespace stoker::image
