// Crops, resizes and padding: identical to torchvision.transforms on PIL images.
#include <algorithm>
#include <cmath>

#include "image/transform/ops/step.h"
#include "image/transform/portable_math.h"

namespace stoker::image {
namespace {

// Limits the longer side after resizing, so that no size overflows.
constexpr std::uint64_t kLongest = 1u << 30;

// Python's int(round(n / 2)): a half rounds to even.
std::int64_t half_to_even(std::int64_t n) {
  const std::int64_t floor = n >= 0 ? n / 2 : -((1 - n) / 2);
  return floor + ((n - 2 * floor) & (floor & 1));
}

// Resizes the shorter side to `side`, the other in proportion; for `size` as one number.
Result<Size> shorter_side_to(const Size& from, std::uint32_t side) {
  const std::uint32_t shorter = std::min(from.width, from.height);
  const std::uint64_t longer = std::uint64_t{std::max(from.width, from.height)} * side / shorter;
  if (longer > kLongest) {
    return invalid("image of {} x {} pixels is too narrow to be resized to {}", from.width, from.height,
                   side);
  }
  const auto other = static_cast<std::uint32_t>(longer);
  return from.width == shorter ? Size{side, from.height == shorter ? side : other} : Size{other, side};
}

// Pillow's reducing_gap: a JPEG at least this many times larger than the result is decoded 2, 4 or 8 times
// smaller.
double reducing_gap(Parameters& parameters) { return parameters.number("reducing_gap", 0, {1, 16}); }

class Resize : public Step {
 public:
  Resize(Size size, bool keeps_shape, ResizeFilter filter, double gap)
      : size_(size), keeps_shape_(keeps_shape), filter_(filter), gap_(gap) {}

  static std::unique_ptr<Step> make(Parameters& parameters, Extent& extent) {
    const Size size = parameters.size();
    const ResizeFilter filter = parameters.filter(ResizeFilter::bilinear);
    const bool keeps_shape = parameters.numbers("size", {1}, {1, 16384}, {1, 2}).size() == 1;
    if (!parameters.flag("antialias", true)) {
      parameters.report(invalid("transform: {}: antialias=false is not supported", parameters.name()));
    }
    if (!keeps_shape) {
      extent = size;
    } else if (extent) {
      const Result<Size> scaled = shorter_side_to(*extent, size.width);
      extent = scaled.ok() ? Extent(*scaled) : std::nullopt;
    }
    return std::make_unique<Resize>(size, keeps_shape, filter, reducing_gap(parameters));
  }

  Status apply(Canvas& canvas, PhiloxStream&) const override {
    if (!keeps_shape_) return canvas.resize(size_.width, size_.height, filter_, gap_);
    STOKER_ASSIGN_OR_RETURN(to, shorter_side_to({canvas.width(), canvas.height()}, size_.width));
    return canvas.resize(to.width, to.height, filter_, gap_);
  }

 private:
  Size size_;
  bool keeps_shape_;
  ResizeFilter filter_;
  double gap_;
};

class CenterCrop : public Step {
 public:
  explicit CenterCrop(Size size) : size_(size) {}

  static std::unique_ptr<Step> make(Parameters& parameters, Extent& extent) {
    extent = parameters.size();
    return std::make_unique<CenterCrop>(*extent);
  }

  Status apply(Canvas& canvas, PhiloxStream&) const override {
    return canvas.crop(begin(canvas.width(), size_.width), begin(canvas.height(), size_.height), size_.width,
                       size_.height);
  }

 private:
  // A small image gets black borders, with the odd pixel at the right and bottom.
  static std::int64_t begin(std::int64_t from, std::int64_t to) {
    return from >= to ? half_to_even(from - to) : -((to - from) / 2);
  }
  Size size_;
};

struct Borders {
  std::int64_t left = 0, top = 0, right = 0, bottom = 0;
};

Borders borders(Parameters& parameters) {
  const std::vector<double> given = parameters.numbers("padding", {0}, {0, 16384}, {1, 2, 4});
  const auto at = [&](std::size_t i) { return static_cast<std::int64_t>(given[i % given.size()]); };
  return {at(0), at(1), at(2), at(3)};
}

void require_constant_padding(Parameters& parameters) {
  constexpr std::string_view kModes[] = {"constant"};
  parameters.choice("padding_mode", "constant", kModes);
}

class Pad : public Step {
 public:
  Pad(const Borders& borders, const Rgb& fill) : borders_(borders), fill_(fill) {}

  static std::unique_ptr<Step> make(Parameters& parameters, Extent& extent) {
    if (!parameters.has("padding"))
      parameters.report(invalid("transform: {}: padding is missing", parameters.name()));
    const Borders b = borders(parameters);
    require_constant_padding(parameters);
    if (extent) {
      extent->width += static_cast<std::uint32_t>(b.left + b.right);
      extent->height += static_cast<std::uint32_t>(b.top + b.bottom);
    }
    return std::make_unique<Pad>(b, parameters.fill());
  }

  Status apply(Canvas& canvas, PhiloxStream&) const override {
    return canvas.crop(-borders_.left, -borders_.top,
                       static_cast<std::uint32_t>(canvas.width() + borders_.left + borders_.right),
                       static_cast<std::uint32_t>(canvas.height() + borders_.top + borders_.bottom), fill_);
  }

 private:
  Borders borders_;
  Rgb fill_;
};

class RandomCrop : public Step {
 public:
  RandomCrop(Size size, const Borders& borders, bool pads_if_needed, const Rgb& fill)
      : size_(size), borders_(borders), pads_if_needed_(pads_if_needed), fill_(fill) {}

  static std::unique_ptr<Step> make(Parameters& parameters, Extent& extent) {
    extent = parameters.size();
    require_constant_padding(parameters);
    const Borders b = borders(parameters);
    const bool pads = parameters.flag("pad_if_needed", false);
    return std::make_unique<RandomCrop>(*extent, b, pads, parameters.fill());
  }

  Status apply(Canvas& canvas, PhiloxStream& rng) const override {
    Borders b = borders_;
    std::int64_t width = canvas.width() + b.left + b.right;
    std::int64_t height = canvas.height() + b.top + b.bottom;
    if (pads_if_needed_) {
      widen(size_.width, width, b.left, b.right);
      widen(size_.height, height, b.top, b.bottom);
    }
    if (width < size_.width || height < size_.height) {
      return invalid("image of {} x {} pixels is smaller than the crop of {} x {} (with padding)",
                     canvas.width(), canvas.height(), size_.width, size_.height);
    }
    const std::int64_t y = rng.below(static_cast<std::uint32_t>(height - size_.height + 1));
    const std::int64_t x = rng.below(static_cast<std::uint32_t>(width - size_.width + 1));
    return canvas.crop(x - b.left, y - b.top, size_.width, size_.height, fill_);
  }

 private:
  // torchvision adds the missing pixels on both sides.
  static void widen(std::int64_t wanted, std::int64_t& length, std::int64_t& before, std::int64_t& after) {
    if (length >= wanted) return;
    const std::int64_t missing = wanted - length;
    before += missing;
    after += missing;
    length += 2 * missing;
  }
  Size size_;
  Borders borders_;
  bool pads_if_needed_;
  Rgb fill_;
};

class RandomResizedCrop : public Step {
 public:
  RandomResizedCrop(Size size, const Range& area, const Range& ratio, ResizeFilter filter, double gap)
      : size_(size),
        area_(area),
        ratio_(ratio),
        log_middle_((portable_log(ratio.least) + portable_log(ratio.most)) / 2),
        log_half_((portable_log(ratio.most) - portable_log(ratio.least)) / 2),
        filter_(filter),
        gap_(gap) {}

  static std::unique_ptr<Step> make(Parameters& parameters, Extent& extent) {
    extent = parameters.size();
    const Range area = range(parameters, "scale", {0.08, 1}, {1e-6, 1});
    const Range ratio = range(parameters, "ratio", {3.0 / 4.0, 4.0 / 3.0}, {1e-3, 1e3});
    const ResizeFilter filter = parameters.filter(ResizeFilter::bilinear);
    if (!parameters.flag("antialias", true))
      parameters.report(invalid("transform: {}: antialias=false is not supported", parameters.name()));
    return std::make_unique<RandomResizedCrop>(*extent, area, ratio, filter, reducing_gap(parameters));
  }

  Status apply(Canvas& canvas, PhiloxStream& rng) const override {
    const ImageRegion part = choose(canvas.width(), canvas.height(), rng);
    STOKER_RETURN_IF_ERROR(canvas.crop(part.x, part.y, part.width, part.height));
    return canvas.resize(size_.width, size_.height, filter_, gap_);
  }

 private:
  static Range range(Parameters& parameters, std::string_view key, const Range& fallback,
                     const Range& limits) {
    const auto given = parameters.numbers(key, {fallback.least, fallback.most}, limits, {2});
    if (given[0] <= given[1]) return {given[0], given[1]};
    parameters.report(
        invalid("transform: {}: {} [{}, {}] is empty", parameters.name(), key, given[0], given[1]));
    return fallback;
  }

  // torchvision's get_params: ten attempts, then a centre crop.
  ImageRegion choose(std::uint32_t image_width, std::uint32_t image_height, PhiloxStream& rng) const {
    const double area = static_cast<double>(image_width) * image_height;
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double target = area * (area_.least + (area_.most - area_.least) * rng.uniform());
      const double ratio = portable_exp(log_middle_ + log_half_ * (2.0 * rng.uniform() - 1.0));
      const double width = std::nearbyint(std::sqrt(target * ratio));
      const double height = std::nearbyint(std::sqrt(target / ratio));
      if (width < 1 || width > image_width || height < 1 || height > image_height) continue;
      ImageRegion part{0, 0, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)};
      part.y = rng.below(image_height - part.height + 1);
      part.x = rng.below(image_width - part.width + 1);
      return part;
    }
    return middle(image_width, image_height);
  }

  ImageRegion middle(std::uint32_t image_width, std::uint32_t image_height) const {
    const double shape = static_cast<double>(image_width) / image_height;
    double width = image_width;
    double height = image_height;
    if (shape < ratio_.least) height = std::max(1.0, std::nearbyint(width / ratio_.least));
    if (shape > ratio_.most) width = std::max(1.0, std::nearbyint(height * ratio_.most));
    ImageRegion part{0, 0, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)};
    part.x = (image_width - part.width) / 2;
    part.y = (image_height - part.height) / 2;
    return part;
  }

  Size size_;
  Range area_;
  Range ratio_;
  double log_middle_;
  double log_half_;
  ResizeFilter filter_;
  double gap_;
};

}  // namespace

std::vector<StepKind> crop_steps() {
  return {{"center_crop", CenterCrop::make},
          {"pad", Pad::make},
          {"random_crop", RandomCrop::make},
          {"random_resized_crop", RandomResizedCrop::make},
          {"resize", Resize::make}};
}

}  // namespace stoker::image
