#include "data/transform/resize.h"

#include <algorithm>
#include <cmath>

namespace stoker::data {
namespace {

constexpr int kBits = 22;
constexpr std::int32_t kHalf = 1 << (kBits - 1);

std::uint8_t to_byte(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255)); }

double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

}  // namespace

void Resizer::make_filter(std::uint32_t from, std::uint32_t to, std::uint32_t begin, std::uint32_t count,
                          Filter& filter) {
  filter.taps.resize(count);
  filter.weights.clear();
  const double scale = static_cast<double>(from) / to;
  const double support = std::max(scale, 1.0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const double centre = (begin + i + 0.5) * scale;
    const auto first = static_cast<std::uint32_t>(std::max(0.0, centre - support + 0.5));
    const auto last = std::min(from, static_cast<std::uint32_t>(centre + support + 0.5));
    filter.taps[i] = {first, last - first, filter.weights.size()};
    double sum = 0;
    for (std::uint32_t j = first; j < last; ++j) sum += triangle((j - centre + 0.5) / support);
    for (std::uint32_t j = first; j < last; ++j) {
      const double weight = triangle((j - centre + 0.5) / support) / sum;
      filter.weights.push_back(static_cast<std::int32_t>(0.5 + weight * (1 << kBits)));
    }
  }
}

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

void Resizer::down(const Region& window, std::uint32_t first_row) {
  const std::size_t stride = std::size_t{3} * window.width;
  sums_.resize(stride);
  for (std::uint32_t y = 0; y < window.height; ++y) {
    const Tap& tap = vertical_.taps[y];
    std::fill(sums_.begin(), sums_.end(), kHalf);
    for (std::uint32_t j = 0; j < tap.count; ++j) {
      const std::int32_t weight = vertical_.weights[tap.weights + j];
      const std::uint8_t* row = rows_.data() + (tap.first + j - first_row) * stride;
      for (std::size_t i = 0; i < stride; ++i) sums_[i] += row[i] * weight;
    }
    std::transform(sums_.begin(), sums_.end(), pixels_.begin() + static_cast<std::ptrdiff_t>(y * stride),
                   to_byte);
  }
}

ImageView Resizer::resize(const ImageView& image, const Region& part, std::uint32_t width,
                          std::uint32_t height, const Region& window) {
  make_filter(part.width, width, window.x, window.width, horizontal_);
  make_filter(part.height, height, window.y, window.height, vertical_);
  const std::uint32_t first_row = vertical_.taps.front().first;
  const std::uint32_t end_row = vertical_.taps.back().first + vertical_.taps.back().count;
  const std::size_t from_stride = std::size_t{3} * image.width;
  const std::size_t stride = std::size_t{3} * window.width;
  rows_.resize((end_row - first_row) * stride);
  for (std::uint32_t y = first_row; y < end_row; ++y) {
    across(image.pixels.data() + (part.y + y) * from_stride + std::size_t{3} * part.x,
           rows_.data() + (y - first_row) * stride);
  }
  pixels_.resize(window.height * stride);
  down(window, first_row);
  return {window.width, window.height, pixels_};
}

}  // namespace stoker::data
