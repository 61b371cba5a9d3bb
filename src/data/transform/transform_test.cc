#include "data/transform/transform.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "data/golden_test.h"

namespace stoker::data {
namespace {

// Red holds the column, green the row, so that a result tells where it came from.
Image coordinates(std::uint32_t width, std::uint32_t height) {
  Image image{width, height, {}};
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      image.pixels.insert(image.pixels.end(),
                          {static_cast<std::uint8_t>(x + 1), static_cast<std::uint8_t>(y + 1), 200});
    }
  }
  return image;
}

class Applied {
 public:
  Applied(const TransformOptions& options, const Image& image, const Occasion& occasion = {})
      : size_(options.size) {
    Transform transform = Transform::create(options).value();
    out_.resize(transform.output_size());
    status_ = transform.apply(image.view(), occasion, out_);
  }
  int at(int channel, std::uint32_t y, std::uint32_t x) const {
    return static_cast<int>(std::lround(out_[(channel * size_ + y) * size_ + x] * 255));
  }
  const std::vector<float>& values() const { return out_; }
  const Status& status() const { return status_; }

 private:
  std::uint32_t size_;
  std::vector<float> out_;
  Status status_;
};

TEST(Philox, gives_the_known_answers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Dice, numbers_depend_on_seed_epoch_and_sample) {
  std::set<std::uint32_t> first;
  for (std::uint64_t seed : {0ull, 1ull, 1ull << 40}) {
    for (std::uint64_t epoch : {0, 1}) {
      for (std::uint64_t sample : {0ull, 1ull, 1ull << 40}) first.insert(Dice({seed, epoch, sample}).next());
    }
  }
  EXPECT_EQ(first.size(), 18u);
  Dice a({1, 2, 3}), b({1, 2, 3});
  for (int i = 0; i < 9; ++i) EXPECT_EQ(a.next(), b.next());
}

TEST(Transform, normalises_each_byte_as_torchvision_does) {
  Image image{16, 16, {}};
  for (int i = 0; i < 256; ++i) image.pixels.insert(image.pixels.end(), 3, static_cast<std::uint8_t>(i));
  const Applied applied(
      {.size = 16, .resize = 16, .mean = {0.485f, 0.456f, 0.406f}, .deviation = {0.229f, 0.224f, 0.225f}},
      image);
  EXPECT_EQ(hex(sha256(std::as_bytes(std::span(applied.values())))),
            golden("images.json")["levels_sha256"].get<std::string>());
}

TEST(Transform, centre_crop_takes_the_middle) {
  const Applied applied({.size = 2, .resize = 4}, coordinates(6, 4));
  EXPECT_EQ(applied.at(0, 0, 0), 3);
  EXPECT_EQ(applied.at(1, 0, 0), 2);
  EXPECT_EQ(applied.at(0, 1, 1), 4);
  EXPECT_EQ(applied.at(1, 1, 1), 3);
  EXPECT_EQ(applied.at(2, 1, 1), 200);
}

TEST(Transform, centre_crop_resizes_the_shorter_side_first) {
  const Image image = coordinates(60, 40);
  const Applied applied({.size = 10, .resize = 20}, image);
  Resizer resizer;
  const ImageView whole = resizer.resize(image.view(), {0, 0, 60, 40}, 30, 20, {0, 0, 30, 20});
  for (std::uint32_t y = 0; y < 10; ++y) {
    for (std::uint32_t x = 0; x < 10; ++x) {
      EXPECT_EQ(applied.at(0, y, x), whole.pixels[3 * ((y + 5) * 30 + x + 10)]);
    }
  }
}

TEST(Transform, padded_crop_reaches_every_place_and_flips_half_of_them) {
  const Image image = coordinates(8, 8);
  std::map<std::pair<int, int>, int> places;
  int flipped = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    const Applied applied({.size = 8, .crop = Crop::padded, .padding = 2, .flip = true}, image,
                          {1, 0, sample});
    const bool is_flipped = applied.at(0, 4, 3) > applied.at(0, 4, 4);
    flipped += is_flipped ? 1 : 0;
    const int x = is_flipped ? applied.at(0, 4, 3) - 5 : applied.at(0, 4, 4) - 5;
    ++places[{x, applied.at(1, 4, 4) - 5}];
    EXPECT_EQ(applied.at(2, 0, 0), applied.at(0, 0, 0) == 0 ? 0 : 200) << "outside is black";
  }
  EXPECT_EQ(places.size(), 25u);
  for (const auto& [place, count] : places) EXPECT_GT(count, 40);
  EXPECT_NEAR(flipped, 1000, 120);
}

TEST(Transform, scaled_crop_stays_in_the_image_whatever_its_shape) {
  for (auto [width, height] : {std::pair{60u, 40u}, {1u, 1u}, {1u, 200u}, {200u, 3u}}) {
    const Image image = coordinates(width, height);
    for (std::uint64_t sample = 0; sample < 200; ++sample) {
      const Applied applied({.size = 7, .crop = Crop::scaled, .flip = true}, image, {1, 0, sample});
      for (std::uint32_t i = 0; i < 49; ++i) EXPECT_EQ(applied.at(2, i / 7, i % 7), 200);
    }
  }
}

TEST(Transform, random_part_depends_on_the_occasion_alone) {
  const Image image = coordinates(40, 30);
  for (Crop crop : {Crop::padded, Crop::scaled}) {
    const TransformOptions options{.size = 16, .crop = crop, .padding = 4, .flip = true};
    const Applied once(options, image, {7, 3, 99});
    EXPECT_EQ(once.values(), Applied(options, image, {7, 3, 99}).values());
    EXPECT_NE(once.values(), Applied(options, image, {7, 4, 99}).values());
    EXPECT_NE(once.values(), Applied(options, image, {7, 3, 98}).values());
    EXPECT_NE(once.values(), Applied(options, image, {8, 3, 99}).values());
  }
}

TEST(Transform, refuses_what_cannot_work) {
  const auto refusal = [](const TransformOptions& options) {
    return Transform::create(options).status().to_string();
  };
  EXPECT_EQ(refusal({.size = 0}), "transform: size 0 is not between 1 and 16384");
  EXPECT_EQ(refusal({.size = 8, .resize = 7}), "transform: resize 7 is not between 8 (size) and 16384");
  EXPECT_EQ(refusal({.size = 8, .crop = Crop::padded, .padding = 20000}),
            "transform: padding 20000 is not between 0 and 16384");
  EXPECT_EQ(refusal({.size = 8, .resize = 8, .deviation = {1, 0, 1}}),
            "transform: deviation 0 is not positive");
  EXPECT_EQ(Applied({.size = 8, .crop = Crop::padded, .padding = 1}, coordinates(5, 9)).status().to_string(),
            "image of 5 x 9 pixels is smaller than the crop of 8 (with padding 1)");
  EXPECT_EQ(Applied({.size = 8, .resize = 16384}, coordinates(1, 100000)).status().to_string(),
            "image of 1 x 100000 pixels is too narrow to be resized to 16384");
}

TEST(Resizer, gives_the_pixels_that_pillow_gives) {
  const nlohmann::json reference = golden("images.json");
  const std::string source = from_base64(reference["resize_source"]);
  const ImageView image{37, 23, {reinterpret_cast<const std::uint8_t*>(source.data()), source.size()}};
  Resizer resizer;
  ASSERT_GE(reference["resized"].size(), 7u);
  for (const auto& row : reference["resized"]) {
    SCOPED_TRACE(row.dump());
    const std::array<std::uint32_t, 4> box = row["box"];
    const std::array<std::uint32_t, 2> size = row["size"];
    const ImageView result = resizer.resize(image, {box[0], box[1], box[2] - box[0], box[3] - box[1]},
                                            size[0], size[1], {0, 0, size[0], size[1]});
    EXPECT_EQ(hex(sha256(std::as_bytes(result.pixels))), row["sha256"].get<std::string>());
  }
}

}  // namespace
}  // namespace stoker::data
