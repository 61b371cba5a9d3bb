// Random colour operations: torchvision's ColorJitter, Grayscale and RandomGrayscale.
#include <algorithm>
#include <array>
#include <numeric>

#include "image/transform/ops/colour.h"
#include "image/transform/ops/step.h"

namespace stoker::image {
namespace {

class Grayscale : public Step {
 public:
  explicit Grayscale(double probability) : probability_(probability) {}

  static std::unique_ptr<Step> make(Parameters& parameters, Extent&) {
    if (parameters.count("num_output_channels", 3, {1, 3}) != 3) {
      parameters.report(invalid("transform: {}: num_output_channels is not 3", parameters.name()));
    }
    return std::make_unique<Grayscale>(1);
  }
  static std::unique_ptr<Step> make_random(Parameters& parameters, Extent&) {
    return std::make_unique<Grayscale>(parameters.number("p", 0.1, {0, 1}));
  }

  Status apply(Canvas& canvas, PhiloxStream& rng) const override {
    if (probability_ < 1 && rng.uniform() >= probability_) return Status();
    STOKER_ASSIGN_OR_RETURN(image, canvas.pixels());
    to_grayscale(image->pixels);
    return Status();
  }

 private:
  double probability_;
};

class ColorJitter : public Step {
 public:
  // Brightness, contrast, saturation, hue; empty for unchanged ones.
  using Ranges = std::array<std::optional<Range>, 4>;
  explicit ColorJitter(const Ranges& ranges) : ranges_(ranges) {}

  static std::unique_ptr<Step> make(Parameters& parameters, Extent&) {
    return std::make_unique<ColorJitter>(Ranges{factor(parameters, "brightness"),
                                                factor(parameters, "contrast"),
                                                factor(parameters, "saturation"), hue(parameters)});
  }

  Status apply(Canvas& canvas, PhiloxStream& rng) const override {
    std::array<double, 4> chosen{};
    for (std::size_t i = 0; i < 4; ++i) {
      if (ranges_[i]) chosen[i] = ranges_[i]->least + (ranges_[i]->most - ranges_[i]->least) * rng.uniform();
    }
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    for (std::uint32_t i = 3; i > 0; --i) std::swap(order[i], order[rng.below(i + 1)]);
    STOKER_ASSIGN_OR_RETURN(image, canvas.pixels());
    for (std::size_t which : order) {
      if (ranges_[which]) change(image->pixels, which, chosen[which]);
    }
    return Status();
  }

 private:
  static std::optional<Range> factor(Parameters& parameters, std::string_view key) {
    const auto given = parameters.numbers(key, {0}, {0, 1e6}, {1, 2});
    if (given.size() == 2) return checked(parameters, key, {given[0], given[1]});
    if (given[0] == 0) return std::nullopt;
    return Range{std::max(0.0, 1 - given[0]), 1 + given[0]};
  }
  static std::optional<Range> hue(Parameters& parameters) {
    const auto given = parameters.numbers("hue", {0}, {-0.5, 0.5}, {1, 2});
    if (given.size() == 2) return checked(parameters, "hue", {given[0], given[1]});
    if (given[0] < 0)
      parameters.report(invalid("transform: {}: hue {} is negative", parameters.name(), given[0]));
    return given[0] > 0 ? std::optional(Range{-given[0], given[0]}) : std::nullopt;
  }
  static Range checked(Parameters& parameters, std::string_view key, const Range& range) {
    if (range.least > range.most) {
      parameters.report(
          invalid("transform: {}: {} [{}, {}] is empty", parameters.name(), key, range.least, range.most));
    }
    return range;
  }
  static void change(Pixels rgb, std::size_t which, double by) {
    switch (which) {
      case 0:
        return adjust_brightness(rgb, static_cast<float>(by));
      case 1:
        return adjust_contrast(rgb, static_cast<float>(by));
      case 2:
        return adjust_saturation(rgb, static_cast<float>(by));
      default:
        return adjust_hue(rgb, by);
    }
  }

  Ranges ranges_;
};

}  // namespace

std::vector<StepKind> colour_steps() {
  return {{"color_jitter", ColorJitter::make},
          {"grayscale", Grayscale::make},
          {"random_grayscale", Grayscale::make_random}};
}

}  // namespace stoker::image
