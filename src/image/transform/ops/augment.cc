// torchvision's RandAugment and TrivialAugmentWide: operations drawn from a list of fourteen.
#include <algorithm>
#include <array>
#include <cmath>

#include "image/transform/ops/colour.h"
#include "image/transform/ops/step.h"
#include "image/transform/ops/warp.h"

namespace stoker::image {
namespace {

enum class AugmentKind {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize,
};
constexpr std::uint32_t kKinds = 14;

bool has_sign(AugmentKind kind) { return kind >= AugmentKind::shear_x && kind <= AugmentKind::sharpness; }

// The maximum strength of each kind, and the unit of translations.
struct Strength {
  double shear;
  double translate_part;  // of the side; if 0, `translate_pixels`
  double translate_pixels;
  double rotate;
  double enhance;
  double posterize_bits;
};
constexpr Strength kRandAugment{0.3, 150.0 / 331.0, 0, 30, 0.9, 4};
constexpr Strength kTrivialAugment{0.99, 0, 32, 135, 0.99, 6};

class Augment : public Step {
 public:
  // A `magnitude` of -1 is drawn, too.
  struct Options {
    Strength strength;
    std::uint32_t operations = 2;
    std::int64_t magnitude = 9;
    std::int64_t bins = 31;
    Rgb fill{0, 0, 0};
  };
  explicit Augment(const Options& options) : options_(options) {}

  static std::unique_ptr<Step> make_rand(Parameters& parameters, Extent&) {
    Options options{kRandAugment};
    options.operations = static_cast<std::uint32_t>(parameters.count("num_ops", 2, {0, 100}));
    options.bins = parameters.count("num_magnitude_bins", 31, {2, 1000});
    options.magnitude = parameters.count("magnitude", 9, {0, static_cast<double>(options.bins - 1)});
    if (options.magnitude >= options.bins) {
      parameters.report(invalid("transform: {}: magnitude {} (the default) is not between 0 and {}",
                                parameters.name(), options.magnitude, options.bins - 1));
    }
    return finish(parameters, options);
  }
  static std::unique_ptr<Step> make_trivial(Parameters& parameters, Extent&) {
    Options options{kTrivialAugment, 1, -1};
    options.bins = parameters.count("num_magnitude_bins", 31, {2, 1000});
    return finish(parameters, options);
  }

  Status apply(Canvas& canvas, PhiloxStream& rng) const override {
    for (std::uint32_t i = 0; i < options_.operations; ++i) {
      const AugmentKind kind = static_cast<AugmentKind>(rng.below(kKinds));
      const std::int64_t bin =
          options_.magnitude >= 0 ? options_.magnitude : rng.below(static_cast<std::uint32_t>(options_.bins));
      const bool is_negative = has_sign(kind) && rng.below(2) == 1;
      STOKER_RETURN_IF_ERROR(apply_one(
          canvas, kind, is_negative ? -magnitude(canvas, kind, bin) : magnitude(canvas, kind, bin)));
    }
    return Status();
  }

 private:
  static std::unique_ptr<Step> finish(Parameters& parameters, Options options) {
    options.fill = parameters.fill();
    if (parameters.filter(ResizeFilter::nearest) != ResizeFilter::nearest) {
      parameters.report(invalid("transform: {}: only interpolation nearest is supported", parameters.name()));
    }
    return std::make_unique<Augment>(options);
  }

  double magnitude(const Canvas& canvas, AugmentKind kind, std::int64_t bin) const {
    const double steps = static_cast<double>(options_.bins - 1);
    const double share = static_cast<double>(bin) / steps;
    const Strength& strength = options_.strength;
    const auto translate = [&](std::uint32_t side) {
      return share *
             (strength.translate_part > 0 ? strength.translate_part * side : strength.translate_pixels);
    };
    switch (kind) {
      case AugmentKind::shear_x:
      case AugmentKind::shear_y:
        return share * strength.shear;
      case AugmentKind::translate_x:
        return translate(canvas.width());
      case AugmentKind::translate_y:
        return translate(canvas.height());
      case AugmentKind::rotate:
        return share * strength.rotate;
      case AugmentKind::posterize:
        return 8 - std::nearbyint(static_cast<double>(bin) / (steps / strength.posterize_bits));
      case AugmentKind::solarize:
        return 255 * (1 - share);
      default:
        return share * strength.enhance;
    }
  }

  Status apply_warp(Canvas& canvas, const Image& image, const Affine& affine) const {
    warp(image, affine, options_.fill, canvas.spare());
    canvas.replace();
    return Status();
  }

  Status apply_one(Canvas& canvas, AugmentKind kind, double magnitude) const {
    if (kind == AugmentKind::identity) return Status();
    STOKER_ASSIGN_OR_RETURN(image, canvas.pixels());
    switch (kind) {
      case AugmentKind::shear_x:
        return apply_warp(canvas, *image, sheared(magnitude, 0));
      case AugmentKind::shear_y:
        return apply_warp(canvas, *image, sheared(0, magnitude));
      case AugmentKind::translate_x:
        return apply_warp(canvas, *image, translated(std::trunc(magnitude), 0));
      case AugmentKind::translate_y:
        return apply_warp(canvas, *image, translated(0, std::trunc(magnitude)));
      case AugmentKind::rotate:
        return apply_warp(canvas, *image, rotated(magnitude, image->width, image->height));
      default:
        apply_colour_op(canvas, *image, kind, magnitude);
        return Status();
    }
  }

  static void apply_colour_op(Canvas& canvas, Image& image, AugmentKind kind, double magnitude) {
    const auto factor = static_cast<float>(1 + magnitude);
    switch (kind) {
      case AugmentKind::brightness:
        return adjust_brightness(image.pixels, factor);
      case AugmentKind::color:
        return adjust_saturation(image.pixels, factor);
      case AugmentKind::contrast:
        return adjust_contrast(image.pixels, factor);
      case AugmentKind::sharpness:
        return adjust_sharpness(image, factor, canvas.work());
      case AugmentKind::posterize:
        return posterize(image.pixels, static_cast<int>(magnitude));
      case AugmentKind::solarize:
        return solarize(image.pixels, magnitude);
      case AugmentKind::auto_contrast:
        return autocontrast(image.pixels);
      case AugmentKind::equalize:
        return equalize(image.pixels);
      default:
        return;
    }
  }

  Options options_;
};

}  // namespace

std::vector<StepKind> augment_steps() {
  return {{"rand_augment", Augment::make_rand}, {"trivial_augment_wide", Augment::make_trivial}};
}

}  // namespace stoker::image
