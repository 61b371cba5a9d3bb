// torchvision's RandAugment and TrivialAugmentWide: operations drawn from one list of fourteen.
#include <algorithm>
#include <array>
#include <cmath>

#include "data/transform/ops/colour.h"
#include "data/transform/ops/step.h"
#include "data/transform/ops/warp.h"

namespace stoker::data {
namespace {

enum class Kind {
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

bool has_sign(Kind kind) { return kind >= Kind::shear_x && kind <= Kind::sharpness; }

// How strong each kind may become, and the width of the picture that translations are a part of.
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
  // `magnitude` of -1 draws it, too.
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
      parameters.refuse(invalid("transform: {}: magnitude {} (as none is given) is not between 0 and {}",
                                parameters.name(), options.magnitude, options.bins - 1));
    }
    return finish(parameters, options);
  }
  static std::unique_ptr<Step> make_trivial(Parameters& parameters, Extent&) {
    Options options{kTrivialAugment, 1, -1};
    options.bins = parameters.count("num_magnitude_bins", 31, {2, 1000});
    return finish(parameters, options);
  }

  Status apply(Canvas& canvas, Dice& dice) const override {
    for (std::uint32_t i = 0; i < options_.operations; ++i) {
      const Kind kind = static_cast<Kind>(dice.below(kKinds));
      const std::int64_t bin = options_.magnitude >= 0
                                   ? options_.magnitude
                                   : dice.below(static_cast<std::uint32_t>(options_.bins));
      const bool is_negative = has_sign(kind) && dice.below(2) == 1;
      RETURN_IF_ERROR(apply_one(canvas, kind,
                                is_negative ? -magnitude(canvas, kind, bin) : magnitude(canvas, kind, bin)));
    }
    return Status();
  }

 private:
  static std::unique_ptr<Step> finish(Parameters& parameters, Options options) {
    options.fill = parameters.fill();
    if (parameters.filter(Filter::nearest) != Filter::nearest) {
      parameters.refuse(invalid("transform: {}: only interpolation nearest is supported", parameters.name()));
    }
    return std::make_unique<Augment>(options);
  }

  double magnitude(const Canvas& canvas, Kind kind, std::int64_t bin) const {
    const double steps = static_cast<double>(options_.bins - 1);
    const double share = static_cast<double>(bin) / steps;
    const Strength& strength = options_.strength;
    const auto translate = [&](std::uint32_t side) {
      return share *
             (strength.translate_part > 0 ? strength.translate_part * side : strength.translate_pixels);
    };
    switch (kind) {
      case Kind::shear_x:
      case Kind::shear_y:
        return share * strength.shear;
      case Kind::translate_x:
        return translate(canvas.width());
      case Kind::translate_y:
        return translate(canvas.height());
      case Kind::rotate:
        return share * strength.rotate;
      case Kind::posterize:
        return 8 - std::nearbyint(static_cast<double>(bin) / (steps / strength.posterize_bits));
      case Kind::solarize:
        return 255 * (1 - share);
      default:
        return share * strength.enhance;
    }
  }

  Status warped(Canvas& canvas, const Image& image, const Affine& affine) const {
    warp(image, affine, options_.fill, canvas.spare());
    canvas.replace();
    return Status();
  }

  Status apply_one(Canvas& canvas, Kind kind, double magnitude) const {
    if (kind == Kind::identity) return Status();
    OK_OR_RETURN(image, canvas.pixels());
    switch (kind) {
      case Kind::shear_x:
        return warped(canvas, *image, sheared(magnitude, 0));
      case Kind::shear_y:
        return warped(canvas, *image, sheared(0, magnitude));
      case Kind::translate_x:
        return warped(canvas, *image, shifted(std::trunc(magnitude), 0));
      case Kind::translate_y:
        return warped(canvas, *image, shifted(0, std::trunc(magnitude)));
      case Kind::rotate:
        return warped(canvas, *image, turned(magnitude, image->width, image->height));
      default:
        recolour(canvas, *image, kind, magnitude);
        return Status();
    }
  }

  static void recolour(Canvas& canvas, Image& image, Kind kind, double magnitude) {
    const auto factor = static_cast<float>(1 + magnitude);
    switch (kind) {
      case Kind::brightness:
        return change_brightness(image.pixels, factor);
      case Kind::color:
        return change_saturation(image.pixels, factor);
      case Kind::contrast:
        return change_contrast(image.pixels, factor);
      case Kind::sharpness:
        return change_sharpness(image, factor, canvas.work());
      case Kind::posterize:
        return posterize(image.pixels, static_cast<int>(magnitude));
      case Kind::solarize:
        return solarize(image.pixels, magnitude);
      case Kind::auto_contrast:
        return stretch_contrast(image.pixels);
      case Kind::equalize:
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

}  // namespace stoker::data
