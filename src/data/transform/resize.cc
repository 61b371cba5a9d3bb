#include "data/transform/resize.h"

#include <algorithm>
#include <cmath>

namespace stoker::data {
namespace {

constexpr int kBits = 22;
constexpr std::int32_t kHalf = 1 << (kBits - 1);

std::uint8_t to_byte(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255)); }

double sinc(double x) {
  if (x == 0) return 1;
  x *= 3.14159265358979323846;
  return std::sin(x) / x;
}

double support_of(Filter filter) {
  switch (filter) {
    case Filter::nearest:
    case Filter::box:
      return 0.5;
    case Filter::bilinear:
    case Filter::hamming:
      return 1;
    case Filter::bicubic:
      return 2;
    case Filter::lanczos:
      return 3;
  }
  return 1;
}

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double hamming(double x) {
  x = std::abs(x);
  if (x == 0) return 1;
  if (x >= 1) return 0;
  x *= 3.14159265358979323846;
  return std::sin(x) / x * (0.54 + 0.46 * std::cos(x));
}

double weight_at(Filter filter, double x) {
  switch (filter) {
    case Filter::nearest:
    case Filter::box:
      return x > -0.5 && x <= 0.5 ? 1 : 0;
    case Filter::bilinear:
      return std::max(0.0, 1.0 - std::abs(x));
    case Filter::hamming:
      return hamming(x);
    case Filter::bicubic:
      return bicubic(x);
    case Filter::lanczos:
      return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
  }
  return 0;
}

std::int32_t fixed(double weight) {
  return static_cast<std::int32_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << kBits));
}

}  // namespace

void Resizer::make_taps(Filter filter, std::uint32_t from, std::uint32_t to, std::uint32_t begin,
                        std::uint32_t count, Taps& taps) {
  taps.taps.resize(count);
  taps.weights.clear();
  const double scale = static_cast<double>(from) / to;
  const double stretch = std::max(scale, 1.0);
  const double support = support_of(filter) * stretch;
  for (std::uint32_t i = 0; i < count; ++i) {
    const double centre = (begin + i + 0.5) * scale;
    if (filter == Filter::nearest) {
      taps.taps[i] = {std::min(from - 1, static_cast<std::uint32_t>(centre)), 1, taps.weights.size()};
      taps.weights.push_back(1 << kBits);
      continue;
    }
    const auto first = static_cast<std::uint32_t>(std::max(0.0, centre - support + 0.5));
    const auto last = std::min(from, static_cast<std::uint32_t>(centre + support + 0.5));
    taps.taps[i] = {first, last - first, taps.weights.size()};
    double sum = 0;
    for (std::uint32_t j = first; j < last; ++j) sum += weight_at(filter, (j - centre + 0.5) / stretch);
    for (std::uint32_t j = first; j < last; ++j)
      taps.weights.push_back(fixed(weight_at(filter, (j - centre + 0.5) / stretch) / sum));
  }
}

void Resizer::start(const Resizing& resizing) {
  resizing_ = resizing;
  const Region& window = resizing.window;
  make_taps(resizing.filter, resizing.part.width, resizing.width, window.x, window.width, horizontal_);
  make_taps(resizing.filter, resizing.part.height, resizing.height, window.y, window.height, vertical_);
  needed_ = {resizing.part.x + horizontal_.first(), resizing.part.y + vertical_.first(),
             horizontal_.end() - horizontal_.first(), vertical_.end() - vertical_.first()};
  for (Tap& tap : horizontal_.taps) tap.first += resizing.part.x - needed_.x;
  for (Tap& tap : vertical_.taps) tap.first += resizing.part.y - needed_.y;
  rows_done_ = 0;
  row_.resize(std::size_t{3} * window.width);
  rows_.resize(std::size_t{3} * window.width * needed_.height);
}

void Resizer::take(const Held& pixels) { pixels_ = pixels; }

void Resizer::across(const std::uint8_t* row, std::uint8_t* out) const {
  for (const Tap& tap : horizontal_.taps) {
    const std::int32_t* weight = horizontal_.weights.data() + tap.weights;
    const std::uint8_t* pixel = row + std::size_t{3} * tap.first;
    std::int32_t sum[3] = {kHalf, kHalf, kHalf};
    for (std::uint32_t j = 0; j < tap.count; ++j, pixel += 3) {
      for (int c = 0; c < 3; ++c) sum[c] += pixel[c] * weight[j];
    }
    for (int c = 0; c < 3; ++c) *out++ = to_byte(sum[c]);
  }
}

const std::uint8_t* Resizer::row(std::uint32_t y) {
  const Tap& tap = vertical_.taps[y];
  const std::size_t stride = row_.size();
  const std::size_t from_stride = std::size_t{3} * pixels_.image.width;
  for (; rows_done_ < tap.first + tap.count; ++rows_done_) {
    const std::size_t from = (needed_.y + rows_done_ - pixels_.y) * from_stride;
    across(pixels_.image.pixels.data() + from + std::size_t{3} * (needed_.x - pixels_.x),
           rows_.data() + rows_done_ * stride);
  }
  sums_.assign(stride, kHalf);
  for (std::uint32_t j = 0; j < tap.count; ++j) {
    const std::int32_t weight = vertical_.weights[tap.weights + j];
    const std::uint8_t* source = rows_.data() + (tap.first + j) * stride;
    for (std::size_t i = 0; i < stride; ++i) sums_[i] += source[i] * weight;
  }
  std::transform(sums_.begin(), sums_.end(), row_.begin(), to_byte);
  return row_.data();
}

ImageView Resizer::all() {
  const Region& window = resizing_.window;
  all_.resize(row_.size() * window.height);
  for (std::uint32_t y = 0; y < window.height; ++y)
    std::copy_n(row(y), row_.size(), all_.data() + y * row_.size());
  return {window.width, window.height, all_};
}

}  // namespace stoker::data
