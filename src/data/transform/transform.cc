#include "data/transform/transform.h"

#include <algorithm>
#include <cmath>

namespace stoker::data {
namespace {

constexpr std::uint32_t kLargest = 16384;
// Of the longer side after resizing, so that no size overflows.
constexpr std::uint64_t kLongest = 1u << 30;

// Python's int(round(n / 2)): a half goes to the even neighbour.
std::uint32_t half_of(std::uint32_t n) { return n / 2 + ((n % 2) & ((n / 2) % 2)); }

// e^x for |x| < 0.3 by operations that IEEE 754 rounds alike everywhere; libm's exp differs between versions.
double exp_near_zero(double x) {
  double sum = 1.0;
  for (int n = 14; n >= 1; --n) sum = 1.0 + sum * (x / n);
  return sum;
}

// Where the result lies in the image: it may begin outside, where everything is black.
struct Place {
  std::int64_t x = 0;
  std::int64_t y = 0;
  bool flipped = false;
};

using Levels = std::array<float, 256>;

// One colour of one row of the result; nothing of it is in the image where `first` is `end`.
struct Row {
  const std::uint8_t* from = nullptr;  // the colour's byte of the pixel that goes to `first`
  std::int64_t first = 0;
  std::int64_t end = 0;
};

void write_row(const Row& row, const Levels& level, std::span<float> out) {
  std::fill(out.begin(), out.begin() + row.first, level[0]);
  std::fill(out.begin() + row.end, out.end(), level[0]);
  const std::uint8_t* from = row.from;
  for (std::int64_t x = row.first; x < row.end; ++x, from += 3)
    out[static_cast<std::size_t>(x)] = level[*from];
}

void write_planes(const ImageView& image, const Place& place, const std::array<Levels, 3>& levels,
                  std::uint32_t size, std::span<float> out) {
  const std::int64_t first = std::clamp<std::int64_t>(-place.x, 0, size);
  const std::int64_t end = std::clamp<std::int64_t>(std::int64_t{image.width} - place.x, first, size);
  for (std::size_t line = 0; line < std::size_t{3} * size; ++line) {
    const std::size_t channel = line / size;
    const std::int64_t y = place.y + static_cast<std::int64_t>(line % size);
    const bool is_outside = y < 0 || y >= image.height || first == end;
    Row row;
    if (!is_outside) {
      const std::int64_t pixel = y * image.width + place.x + first;
      row = {image.pixels.data() + 3 * pixel + static_cast<std::int64_t>(channel), first, end};
    }
    const std::span<float> result = out.subspan(line * size, size);
    write_row(row, levels[channel], result);
    if (place.flipped) std::reverse(result.begin(), result.end());
  }
}

// torchvision's RandomResizedCrop.get_params: ten attempts, then the middle.
Region random_part(const ImageView& image, Dice& dice) {
  constexpr double kLeastArea = 0.08;
  constexpr double kLogRatio = 0.28768207245178090;  // log(4 / 3)
  const double area = static_cast<double>(image.width) * image.height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * (kLeastArea + (1.0 - kLeastArea) * dice.uniform());
    const double ratio = exp_near_zero(kLogRatio * (2.0 * dice.uniform() - 1.0));
    const double width = std::nearbyint(std::sqrt(target * ratio));
    const double height = std::nearbyint(std::sqrt(target / ratio));
    if (width < 1 || width > image.width || height < 1 || height > image.height) continue;
    Region part{0, 0, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)};
    part.y = dice.below(image.height - part.height + 1);
    part.x = dice.below(image.width - part.width + 1);
    return part;
  }
  const auto widest = [](std::uint32_t side) {
    return static_cast<std::uint32_t>(std::nearbyint(side * 4.0 / 3.0));
  };
  Region part{0, 0, std::min(image.width, widest(image.height)), std::min(image.height, widest(image.width))};
  part.x = (image.width - part.width) / 2;
  part.y = (image.height - part.height) / 2;
  return part;
}

}  // namespace

Result<Transform> Transform::create(const TransformOptions& options) {
  if (options.size < 1 || options.size > kLargest) {
    return invalid("transform: size {} is not between 1 and {}", options.size, kLargest);
  }
  if (options.crop == Crop::centre && (options.resize < options.size || options.resize > kLargest)) {
    return invalid("transform: resize {} is not between {} (size) and {}", options.resize, options.size,
                   kLargest);
  }
  if (options.padding > kLargest) {
    return invalid("transform: padding {} is not between 0 and {}", options.padding, kLargest);
  }
  for (int c = 0; c < 3; ++c) {
    if (!std::isfinite(options.mean[c]))
      return invalid("transform: mean {} is not a number", options.mean[c]);
    if (!(options.deviation[c] > 0))
      return invalid("transform: deviation {} is not positive", options.deviation[c]);
  }
  return Transform(options);
}

Transform::Transform(const TransformOptions& options) : options_(options) {
  for (int c = 0; c < 3; ++c) {
    for (int value = 0; value < 256; ++value) {
      const float unit = static_cast<float>(value) / 255.0f;
      levels_[c][value] = (unit - options_.mean[c]) / options_.deviation[c];
    }
  }
}

Status Transform::apply(const ImageView& image, const Occasion& occasion, std::span<float> out) {
  Dice dice(occasion);
  switch (options_.crop) {
    case Crop::centre:
      return apply_centre(image, dice, out);
    case Crop::padded:
      return apply_padded(image, dice, out);
    case Crop::scaled:
      apply_scaled(image, dice, out);
      return Status();
  }
  return Status();
}

bool Transform::flips(Dice& dice) const { return options_.flip && dice.next() >> 31; }

Status Transform::apply_centre(const ImageView& image, Dice& dice, std::span<float> out) {
  const std::uint32_t size = options_.size;
  const std::uint32_t shorter = std::min(image.width, image.height);
  if (shorter == options_.resize) {
    write_planes(image, {half_of(image.width - size), half_of(image.height - size), flips(dice)}, levels_,
                 size, out);
    return Status();
  }
  const std::uint64_t longer = std::uint64_t{std::max(image.width, image.height)} * options_.resize / shorter;
  if (longer > kLongest) {
    return invalid("image of {} x {} pixels is too narrow to be resized to {}", image.width, image.height,
                   options_.resize);
  }
  const auto width = static_cast<std::uint32_t>(image.width == shorter ? options_.resize : longer);
  const auto height = static_cast<std::uint32_t>(image.height == shorter ? options_.resize : longer);
  const Region window{half_of(width - size), half_of(height - size), size, size};
  const ImageView resized = resizer_.resize(image, {0, 0, image.width, image.height}, width, height, window);
  write_planes(resized, {0, 0, flips(dice)}, levels_, size, out);
  return Status();
}

Status Transform::apply_padded(const ImageView& image, Dice& dice, std::span<float> out) {
  const std::uint32_t size = options_.size;
  const std::uint32_t padding = options_.padding;
  const std::uint64_t width = std::uint64_t{image.width} + 2 * padding;
  const std::uint64_t height = std::uint64_t{image.height} + 2 * padding;
  if (width < size || height < size) {
    return invalid("image of {} x {} pixels is smaller than the crop of {} (with padding {})", image.width,
                   image.height, size, padding);
  }
  const std::int64_t y = dice.below(static_cast<std::uint32_t>(height - size + 1));
  const std::int64_t x = dice.below(static_cast<std::uint32_t>(width - size + 1));
  write_planes(image, {x - padding, y - padding, flips(dice)}, levels_, size, out);
  return Status();
}

void Transform::apply_scaled(const ImageView& image, Dice& dice, std::span<float> out) {
  const std::uint32_t size = options_.size;
  const Region part = random_part(image, dice);
  const bool flipped = flips(dice);
  const ImageView resized = resizer_.resize(image, part, size, size, {0, 0, size, size});
  write_planes(resized, {0, 0, flipped}, levels_, size, out);
}

}  // namespace stoker::data
