#include "image/transform/canvas.h"

#include <gtest/gtest.h>

#include "image/decode/image.h"
#include "image/transform/philox.h"

namespace stoker::image {
namespace {

class WholeImage final : public PixelSource {
 public:
  explicit WholeImage(const Image& image) : image_(image) {}
  std::uint32_t width() const override { return image_.width; }
  std::uint32_t height() const override { return image_.height; }
  Result<PartialImage> pixels(const ImageRegion&, std::uint32_t) override {
    return PartialImage{image_.view(), 0, 0};
  }

 private:
  const Image& image_;
};

// A random operation on a picture of at most 16 x 16 pixels.
Status step(Canvas& canvas, PhiloxStream& rng) {
  const auto around = [&](std::uint32_t size) { return std::int64_t{rng.below(size + 8)} - 4; };
  switch (rng.below(4)) {
    case 0: {
      const std::int64_t x = around(canvas.width());
      const std::int64_t y = around(canvas.height());
      const auto colour = static_cast<std::uint8_t>(rng.below(2) * 255);
      const std::uint32_t width = 1 + rng.below(16);
      return canvas.crop(x, y, width, 1 + rng.below(16), {colour, colour, colour});
    }
    case 1: {
      const std::uint32_t width = 1 + rng.below(16);
      const std::uint32_t height = 1 + rng.below(16);
      return canvas.resize(width, height, static_cast<ResizeFilter>(rng.below(6)));
    }
    case 2:
      canvas.flip_horizontally();
      return {};
    default:
      canvas.flip_vertically();
      return {};
  }
}

// Deferred operations have the same result as immediate ones.
TEST(Canvas, deferred_operations_match_immediate_ones) {
  Image image{9, 7, {}};
  PhiloxStream colours({.sample = 1});
  for (int i = 0; i < 9 * 7 * 3; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(1 + colours.below(254)));
  for (std::uint64_t run = 0; run < 4000; ++run) {
    WholeImage source(image);
    CanvasBuffers noted_buffers;
    CanvasBuffers taken_buffers;
    Canvas noted(source, noted_buffers);
    Canvas taken(source, taken_buffers);
    PhiloxStream rng({.epoch = 1, .sample = run});
    PhiloxStream same({.epoch = 1, .sample = run});
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(step(noted, rng).ok());
      ASSERT_TRUE(step(taken, same).ok());
      ASSERT_TRUE(taken.pixels().ok());
    }
    const Result<Image*> result = noted.pixels();
    ASSERT_TRUE(result.ok());
    ASSERT_EQ((*result)->pixels, (*taken.pixels())->pixels) << "run " << run;
  }
}

TEST(Canvas, a_border_does_not_restore_cropped_pixels) {
  Image image{4, 1, {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}};
  WholeImage source(image);
  CanvasBuffers buffers;
  Canvas canvas(source, buffers);
  ASSERT_TRUE(canvas.crop(1, 0, 2, 1).ok());
  ASSERT_TRUE(canvas.crop(-1, 0, 4, 1, {9, 9, 9}).ok());
  EXPECT_EQ((*canvas.pixels())->pixels, (std::vector<std::uint8_t>{9, 9, 9, 2, 2, 2, 3, 3, 3, 9, 9, 9}));
}

}  // namespace
}  // namespace stoker::image
