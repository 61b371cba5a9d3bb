// The operations with random strength, used through Transform as a user writes them.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "image/transform/transform.h"

namespace stoker::image {
namespace {

using Numbers = std::vector<double>;
using Operations = std::vector<TransformOperation>;

Image picture(std::uint32_t width, std::uint32_t height) {
  Image image{width, height, {}};
  for (std::uint32_t i = 0; i < width * height; ++i) {
    image.pixels.insert(image.pixels.end(),
                        {static_cast<std::uint8_t>(i * 7), static_cast<std::uint8_t>(i * 3 + 40),
                         static_cast<std::uint8_t>(200 - i)});
  }
  return image;
}

std::vector<std::uint8_t> applied(Operations operations, const Image& image,
                                  const SampleKey& sample_key = {}) {
  operations.push_back(
      {"center_crop",
       {{"size", Numbers{static_cast<double>(image.height), static_cast<double>(image.width)}}}});
  const Transform transform =
      Transform::create({.operations = operations, .element = DType::u8, .layout = ImageLayout::nhwc})
          .value();
  std::vector<std::byte> out(transform.bytes());
  TransformScratch scratch;
  const Status status = transform.apply(image.view(), sample_key, scratch, out);
  EXPECT_TRUE(status.ok()) << status.to_string();
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(out.data());
  return {bytes, bytes + out.size()};
}

std::string refusal(const TransformOperation& operation) {
  return Transform::create({{operation, {"center_crop", {{"size", 8.0}}}}}).status().to_string();
}

std::size_t different_results(const TransformOperation& operation, int samples) {
  const Image image = picture(16, 12);
  std::set<std::string> seen;
  for (int i = 0; i < samples; ++i) {
    const auto out = applied({operation}, image, {1, 0, static_cast<std::uint64_t>(i)});
    seen.emplace(out.begin(), out.end());
  }
  return seen.size();
}

TEST(ColorJitter, draws_each_strength_and_the_order_for_every_sample) {
  EXPECT_EQ(different_results({"color_jitter"}, 5), 1u);
  EXPECT_EQ(applied({{"color_jitter"}}, picture(16, 12)), picture(16, 12).pixels);
  for (const char* which : {"brightness", "contrast", "saturation", "hue"}) {
    EXPECT_GE(different_results({"color_jitter", {{which, 0.4}}}, 20), 15u) << which;
  }
}

TEST(ColorJitter, one_number_is_a_range_around_one_and_two_are_the_range) {
  const Image image = picture(16, 12);
  const TransformOperation halved{"color_jitter", {{"brightness", Numbers{0.5, 0.5}}}};
  for (std::uint64_t sample = 0; sample < 3; ++sample) {
    const auto out = applied({halved}, image, {1, 0, sample});
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], image.pixels[i] / 2);
  }
  int brighter = 0;
  for (std::uint64_t sample = 0; sample < 200; ++sample) {
    const auto out = applied({{"color_jitter", {{"brightness", 0.5}}}}, image, {1, 0, sample});
    brighter += out[1] > image.pixels[1] ? 1 : 0;
    EXPECT_GE(out[1], image.pixels[1] / 2);
    EXPECT_LE(out[1], image.pixels[1] * 3 / 2);
  }
  EXPECT_NEAR(brighter, 100, 40);
}

TEST(ColorJitter, refuses_impossible_ranges) {
  EXPECT_EQ(refusal({"color_jitter", {{"hue", 0.6}}}),
            "transform: color_jitter: hue 0.6 is not between -0.5 and 0.5");
  EXPECT_EQ(refusal({"color_jitter", {{"hue", -0.1}}}), "transform: color_jitter: hue -0.1 is negative");
  EXPECT_EQ(refusal({"color_jitter", {{"contrast", Numbers{1.5, 0.5}}}}),
            "transform: color_jitter: contrast [1.5, 0.5] is empty");
}

TEST(Grayscale, produces_equal_channels_with_the_given_probability) {
  int grey = 0;
  for (std::uint64_t sample = 0; sample < 400; ++sample) {
    const auto out = applied({{"random_grayscale", {{"p", 0.25}}}}, picture(16, 12), {1, 0, sample});
    grey += out[3] == out[4] && out[4] == out[5] ? 1 : 0;
  }
  EXPECT_NEAR(grey, 100, 35);
  const auto out = applied({{"Grayscale", {{"num_output_channels", 3.0}}}}, picture(16, 12));
  for (std::size_t i = 0; i < out.size(); i += 3) EXPECT_TRUE(out[i] == out[i + 1] && out[i] == out[i + 2]);
  EXPECT_EQ(refusal({"grayscale", {{"num_output_channels", 1.0}}}),
            "transform: grayscale: num_output_channels is not 3");
}

TEST(RandAugment, draws_from_all_operations_and_keeps_the_size) {
  // 14 operations, some without effect on this picture, nine with a sign.
  EXPECT_GE(different_results({"rand_augment", {{"num_ops", 1.0}}}, 400), 18u);
  EXPECT_LE(different_results({"RandAugment", {{"num_ops", 1.0}}}, 400), 23u);
  EXPECT_GE(different_results({"trivial_augment_wide"}, 400), 100u);
  for (auto [width, height] : {std::pair{1u, 1u}, {2u, 9u}, {50u, 3u}}) {
    for (std::uint64_t sample = 0; sample < 100; ++sample)
      applied({{"rand_augment", {{"num_ops", 3.0}, {"magnitude", 30.0}}}}, picture(width, height),
              {2, 0, sample});
  }
}

TEST(RandAugment, rejects_invalid_options) {
  EXPECT_EQ(refusal({"rand_augment", {{"magnitude", 31.0}}}),
            "transform: rand_augment: magnitude 31 is not between 0 and 30");
  EXPECT_EQ(refusal({"rand_augment", {{"num_magnitude_bins", 8.0}}}),
            "transform: rand_augment: magnitude 9 (the default) is not between 0 and 7");
  EXPECT_EQ(refusal({"rand_augment", {{"interpolation", std::string("bilinear")}}}),
            "transform: rand_augment: only interpolation nearest is supported");
}

TEST(Steps, after_a_crop_apply_to_the_crop_only) {
  // The mean that contrast is measured from must be that of the crop.
  const Image image = picture(16, 12);
  Image left{4, 12, {}};
  for (std::size_t y = 0; y < 12; ++y)
    left.pixels.insert(left.pixels.end(), &image.pixels[y * 48 + 18], &image.pixels[y * 48 + 30]);
  const TransformOperation contrast{"color_jitter", {{"contrast", Numbers{0.2, 0.2}}}};
  EXPECT_EQ(applied({contrast}, left), [&] {
    const Transform transform =
        Transform::create(
            {{{"center_crop", {{"size", Numbers{12, 4}}}}, contrast}, DType::u8, ImageLayout::nhwc})
            .value();
    std::vector<std::byte> out(transform.bytes());
    TransformScratch scratch;
    EXPECT_TRUE(transform.apply(image.view(), {}, scratch, out).ok());
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(out.data());
    return std::vector<std::uint8_t>(bytes, bytes + out.size());
  }());
}

}  // namespace
}  // namespace stoker::image
