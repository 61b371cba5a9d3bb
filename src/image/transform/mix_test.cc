#include "image/transform/mix.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "image/transform/portable_math.h"

namespace stoker::image {
namespace {

constexpr BatchShape kShape{.samples = 3, .width = 4, .height = 2};

// The value encodes sample, plane or channel, row and column.
std::vector<float> numbered(const BatchShape& shape) {
  std::vector<float> values(shape.samples * 3 * shape.width * shape.height);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

std::vector<float> mixed(MixKind kind, const Mix& mix, const BatchShape& shape) {
  std::vector<float> values = numbered(shape);
  EXPECT_TRUE(apply_mix(kind, mix, shape, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

TEST(Mixup, mixes_each_sample_with_the_previous_one) {
  const std::vector<float> before = numbered(kShape);
  const std::vector<float> after = mixed(MixKind::mixup, {.share = 0.75}, kShape);
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i], 0.75f * before[i] + 0.25f * before[(i + 48) % 72]);
  }
}

TEST(Cutmix, copies_one_rectangle_of_the_previous_sample) {
  for (ImageLayout layout : {ImageLayout::nchw, ImageLayout::nhwc}) {
    BatchShape shape = kShape;
    shape.layout = layout;
    const ImageRegion box{1, 1, 2, 1};
    const std::vector<float> before = numbered(shape);
    const std::vector<float> after = mixed(MixKind::cutmix, {.share = 0.75, .box = box}, shape);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::size_t place = i % 24;
      const std::size_t x = layout == ImageLayout::nchw ? place % 4 : place / 3 % 4;
      const std::size_t y = layout == ImageLayout::nchw ? place / 4 % 2 : place / 12;
      const bool is_in = y == 1 && x >= 1 && x < 3;
      EXPECT_EQ(after[i], before[is_in ? (i + 48) % 72 : i]);
    }
  }
}

TEST(Mix, share_is_beta_distributed_and_depends_on_the_key_alone) {
  for (double alpha : {0.1, 0.4, 1.0, 4.0}) {
    double sum = 0, squares = 0;
    constexpr int kBatches = 20000;
    for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
      const double share = draw_mix({MixKind::mixup, alpha}, {3, 1, batch}, kShape).value().share;
      ASSERT_GE(share, 0);
      ASSERT_LE(share, 1);
      sum += share;
      squares += share * share;
    }
    const double mean = sum / kBatches;
    EXPECT_NEAR(mean, 0.5, 0.015) << alpha;
    EXPECT_NEAR(squares / kBatches - mean * mean, 1 / (4 * (2 * alpha + 1)), 0.006) << alpha;
  }
  const auto share = [](const SampleKey& o) { return draw_mix({}, o, kShape).value().share; };
  EXPECT_EQ(share({1, 2, 3}), share({1, 2, 3}));
  EXPECT_NE(share({1, 2, 3}), share({1, 2, 4}));
  EXPECT_NE(share({1, 2, 3}), share({1, 3, 3}));
}

TEST(Mix, kinds_are_equally_likely_and_depend_on_the_key_alone) {
  const MixOptions kinds[] = {{MixKind::mixup, 0.2}, {MixKind::cutmix, 1}};
  int mixups = 0;
  for (std::uint64_t batch = 0; batch < 2000; ++batch) {
    const MixOptions& kind = choose_mix(kinds, {7, 2, batch});
    EXPECT_EQ(&kind, &choose_mix(kinds, {7, 2, batch}));
    mixups += kind.kind == MixKind::mixup ? 1 : 0;
  }
  EXPECT_NEAR(mixups, 1000, 100);
}

TEST(Mix, box_area_matches_the_share) {
  const BatchShape shape{.samples = 2, .width = 50, .height = 30};
  for (std::uint64_t batch = 0; batch < 500; ++batch) {
    const Mix mix = draw_mix({MixKind::cutmix, 1}, {1, 1, batch}, shape).value();
    EXPECT_LE(mix.box.x + mix.box.width, 50u);
    EXPECT_LE(mix.box.y + mix.box.height, 30u);
    EXPECT_DOUBLE_EQ(mix.share, 1 - mix.box.width * mix.box.height / 1500.0);
  }
}

TEST(Mix, rejects_invalid_options) {
  EXPECT_EQ(draw_mix({MixKind::cutmix, 0}, {}, kShape).status().to_string(),
            "cutmix: alpha 0 is not between 0.05 and 100");
  BatchShape shape = kShape;
  shape.element = DType::u8;
  std::vector<std::byte> batch(72);
  EXPECT_EQ(apply_mix(MixKind::mixup, {}, shape, batch).to_string(),
            "mixup: batches of U8 are not supported (F32 is)");
}

TEST(PortableMath, agrees_with_libm) {
  for (double x = -60; x < 60; x += 0.37) EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 1e-14) << x;
  for (double x = 1e-9; x < 1e9; x *= 1.7)
    EXPECT_NEAR(portable_log(x), std::log(x), 1e-14 * (1 + std::abs(std::log(x))));
}

}  // namespace
}  // namespace stoker::image
