// Random flips.
#include "image/transform/ops/step.h"

namespace stoker::image {
namespace {

template <void (Canvas::*Flip)()>
class RandomFlip : public Step {
 public:
  explicit RandomFlip(double probability) : rest_(1.0 - probability) {}

  static std::unique_ptr<Step> make(Parameters& parameters, Extent&) {
    return std::make_unique<RandomFlip>(parameters.number("p", 0.5, {0, 1}));
  }

  Status apply(Canvas& canvas, PhiloxStream& rng) const override {
    if (rng.uniform() >= rest_) (canvas.*Flip)();
    return Status();
  }

 private:
  double rest_;
};

}  // namespace

std::vector<StepKind> flip_steps() {
  return {{"random_horizontal_flip", RandomFlip<&Canvas::flip_horizontally>::make},
          {"random_vertical_flip", RandomFlip<&Canvas::flip_vertically>::make}};
}

}  // namespace stoker::image
