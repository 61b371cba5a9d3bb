#include "data/transform/canvas.h"

#include <gtest/gtest.h>

#include "data/decode/image.h"
#include "data/transform/randomness.h"

namespace stoker::data {
namespace {

class WholeImage final : public PixelSource {
 public:
  explicit WholeImage(const Image& image) : image_(image) {}
  std::uint32_t width() const override { return image_.width; }
  std::uint32_t height() const override { return image_.height; }
  Result<Held> pixels(const Region&, std::uint32_t) override { return Held{image_.view(), 0, 0}; }

 private:
  const Image& image_;
};

// A step between two sizes of picture, in at most 16 x 16 pixels.
Status step(Canvas& canvas, Dice& dice) {
  const auto around = [&](std::uint32_t size) { return std::int64_t{dice.below(size + 8)} - 4; };
  switch (dice.below(4)) {
    case 0: {
      const std::int64_t x = around(canvas.width());
      const std::int64_t y = around(canvas.height());
      const auto colour = static_cast<std::uint8_t>(dice.below(2) * 255);
      const std::uint32_t width = 1 + dice.below(16);
      return canvas.crop(x, y, width, 1 + dice.below(16), {colour, colour, colour});
    }
    case 1: {
      const std::uint32_t width = 1 + dice.below(16);
      const std::uint32_t height = 1 + dice.below(16);
      return canvas.resize(width, height, static_cast<Filter>(dice.below(6)));
    }
    case 2:
      canvas.flip_horizontally();
      return {};
    default:
      canvas.flip_vertically();
      return {};
  }
}

// What is only noted until pixels are wanted comes to the same as step by step.
TEST(Canvas, steps_that_are_noted_give_the_pixels_of_steps_that_are_taken) {
  Image image{9, 7, {}};
  Dice colours({.sample = 1});
  for (int i = 0; i < 9 * 7 * 3; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(1 + colours.below(254)));
  for (std::uint64_t run = 0; run < 4000; ++run) {
    WholeImage source(image);
    CanvasBuffers noted_buffers;
    CanvasBuffers taken_buffers;
    Canvas noted(source, noted_buffers);
    Canvas taken(source, taken_buffers);
    Dice dice({.epoch = 1, .sample = run});
    Dice same({.epoch = 1, .sample = run});
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(step(noted, dice).ok());
      ASSERT_TRUE(step(taken, same).ok());
      ASSERT_TRUE(taken.pixels().ok());
    }
    const Result<Image*> result = noted.pixels();
    ASSERT_TRUE(result.ok());
    ASSERT_EQ((*result)->pixels, (*taken.pixels())->pixels) << "run " << run;
  }
}

TEST(Canvas, what_a_crop_has_cut_off_does_not_come_back_with_a_border) {
  Image image{4, 1, {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}};
  WholeImage source(image);
  CanvasBuffers buffers;
  Canvas canvas(source, buffers);
  ASSERT_TRUE(canvas.crop(1, 0, 2, 1).ok());
  ASSERT_TRUE(canvas.crop(-1, 0, 4, 1, {9, 9, 9}).ok());
  EXPECT_EQ((*canvas.pixels())->pixels, (std::vector<std::uint8_t>{9, 9, 9, 2, 2, 2, 3, 3, 3, 9, 9, 9}));
}

}  // namespace
}  // namespace stoker::data
