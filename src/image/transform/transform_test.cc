#include "image/transform/transform.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/golden_test.h"
#include "image/transform/resize.h"
#include "image/transform/sample_writer.h"

namespace stoker::image {
namespace {

// Red encodes the column, green the row, so that a result shows its source.
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

using Numbers = std::vector<double>;
using Operations = std::vector<TransformOperation>;

class Applied {
 public:
  Applied(const Operations& operations, const Image& image, const SampleKey& sample_key = {}) {
    Transform transform = Transform::create({operations}).value();
    width_ = transform.width();
    height_ = transform.height();
    out_.resize(transform.elements());
    TransformScratch scratch;
    status_ = transform.apply(image.view(), sample_key, scratch, std::as_writable_bytes(std::span(out_)));
  }
  int at(std::size_t channel, std::uint32_t y, std::uint32_t x) const {
    return static_cast<int>(std::lround(out_[(channel * height_ + y) * width_ + x] * 255));
  }
  const std::vector<float>& values() const { return out_; }
  const Status& status() const { return status_; }

 private:
  std::uint32_t width_ = 0;
  std::uint32_t height_ = 0;
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

TEST(PhiloxStream, numbers_depend_on_seed_epoch_and_sample) {
  std::set<std::uint32_t> first;
  for (std::uint64_t seed : {0ull, 1ull, 1ull << 40}) {
    for (std::uint64_t epoch : {0, 1}) {
      for (std::uint64_t sample : {0ull, 1ull, 1ull << 40})
        first.insert(PhiloxStream({seed, epoch, sample}).next());
    }
  }
  EXPECT_EQ(first.size(), 18u);
  PhiloxStream a({1, 2, 3}), b({1, 2, 3});
  for (int i = 0; i < 9; ++i) EXPECT_EQ(a.next(), b.next());
}

TEST(Transform, normalises_each_byte_as_torchvision_does) {
  Image image{16, 16, {}};
  for (int i = 0; i < 256; ++i) image.pixels.insert(image.pixels.end(), 3, static_cast<std::uint8_t>(i));
  const Applied applied(
      {{"center_crop", {{"size", 16.0}}},
       {"normalize", {{"mean", Numbers{0.485, 0.456, 0.406}}, {"std", Numbers{0.229, 0.224, 0.225}}}}},
      image);
  EXPECT_EQ(hex(sha256(std::as_bytes(std::span(applied.values())))),
            golden("images.json")["levels_sha256"].get<std::string>());
}

TEST(Transform, centre_crop_is_centred) {
  const Applied applied({{"center_crop", {{"size", 2.0}}}}, coordinates(6, 4));
  EXPECT_EQ(applied.at(0, 0, 0), 3);
  EXPECT_EQ(applied.at(1, 0, 0), 2);
  EXPECT_EQ(applied.at(0, 1, 1), 4);
  EXPECT_EQ(applied.at(1, 1, 1), 3);
  EXPECT_EQ(applied.at(2, 1, 1), 200);
}

TEST(Transform, centre_crop_resizes_the_shorter_side_first) {
  const Image image = coordinates(60, 40);
  const Applied applied({{"resize", {{"size", 20.0}}}, {"center_crop", {{"size", 10.0}}}}, image);
  Resizer resizer;
  resizer.start({{0, 0, 60, 40}, 30, 20, {0, 0, 30, 20}});
  resizer.set_source({image.view()});
  const ImageView whole = resizer.all();
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
    const Applied applied({{"RandomCrop", {{"size", 8.0}, {"padding", 2.0}}}, {"RandomHorizontalFlip"}},
                          image, {1, 0, sample});
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
      const Applied applied({{"random_resized_crop", {{"size", 7.0}}}, {"random_horizontal_flip"}}, image,
                            {1, 0, sample});
      for (std::uint32_t i = 0; i < 49; ++i) EXPECT_EQ(applied.at(2, i / 7, i % 7), 200);
    }
  }
}

TEST(Transform, randomness_depends_on_the_sample_key_alone) {
  const Image image = coordinates(40, 30);
  for (const TransformOperation& crop :
       {TransformOperation{"random_crop", {{"size", 16.0}, {"padding", 4.0}}},
        TransformOperation{"random_resized_crop", {{"size", 16.0}}}}) {
    const Operations options{crop, {"random_horizontal_flip"}};
    const Applied once(options, image, {7, 3, 99});
    EXPECT_EQ(once.values(), Applied(options, image, {7, 3, 99}).values());
    EXPECT_NE(once.values(), Applied(options, image, {7, 4, 99}).values());
    EXPECT_NE(once.values(), Applied(options, image, {7, 3, 98}).values());
    EXPECT_NE(once.values(), Applied(options, image, {8, 3, 99}).values());
  }
}

TEST(Transform, rejects_invalid_options) {
  const auto refusal = [](const Operations& operations, DType element = DType::f32) {
    return Transform::create({operations, element}).status().to_string();
  };
  EXPECT_EQ(refusal({{"center_crop", {{"size", 0.0}}}}),
            "transform: center_crop: size 0 is not between 1 and 16384");
  EXPECT_EQ(refusal({{"center_crop", {{"size", 2.5}}}}),
            "transform: center_crop: size 2.5 is not a whole number");
  EXPECT_EQ(refusal({{"center_crop"}}), "transform: center_crop: size is missing");
  EXPECT_EQ(refusal({{"center_crop", {{"size", Numbers{1, 2, 3}}}}}),
            "transform: center_crop: size is not 1 or 2 numbers");
  EXPECT_EQ(refusal({{"center_crop", {{"sise", 2.0}, {"size", 2.0}}}}),
            "transform: center_crop: unknown parameter 'sise'; did you mean 'size'?");
  EXPECT_EQ(refusal({{"random_crop", {{"size", 8.0}, {"padding", 20000.0}}}}),
            "transform: random_crop: padding 20000 is not between 0 and 16384");
  EXPECT_EQ(refusal({{"random_crop", {{"size", 8.0}, {"pad_if_needed", 1.0}}}}),
            "transform: random_crop: pad_if_needed is not true or false");
  EXPECT_EQ(refusal({{"random_crop", {{"size", 8.0}, {"padding_mode", std::string("reflect")}}}}),
            "transform: random_crop: padding_mode 'reflect' is unknown (one of: constant)");
  EXPECT_EQ(refusal({{"resize", {{"size", 8.0}, {"interpolation", std::string("bilinaer")}}}}),
            "transform: resize: interpolation 'bilinaer' is unknown; did you mean 'bilinear'?");
  EXPECT_EQ(refusal({{"resize", {{"size", 8.0}, {"interpolation", 2.0}}}}),
            "transform: resize: interpolation is not a string");
  EXPECT_EQ(refusal({{"resize", {{"size", 8.0}, {"antialias", false}}}}),
            "transform: resize: antialias=false is not supported");
  EXPECT_EQ(refusal({{"random_resized_crop", {{"size", 8.0}, {"scale", Numbers{0.9, 0.1}}}}}),
            "transform: random_resized_crop: scale [0.9, 0.1] is empty");
  EXPECT_EQ(refusal({{"pad"}, {"center_crop", {{"size", 2.0}}}}), "transform: pad: padding is missing");
  EXPECT_EQ(refusal({{"CenterCorp", {{"size", 2.0}}}}),
            "transform: unknown operation 'CenterCorp'; did you mean 'center_crop'?");
  EXPECT_EQ(refusal({{"center_crop", {{"size", 8.0}}}, {"normalize", {{"std", Numbers{1, 0, 1}}}}}),
            "transform: normalize: std 0 is not between 1e-06 and 1000000");
  EXPECT_EQ(refusal({{"normalize"}, {"center_crop", {{"size", 8.0}}}}),
            "transform: center_crop follows normalize, which must be the last operation");
  EXPECT_EQ(refusal({{"resize", {{"size", 8.0}}}}),
            "transform: no operation fixes the output size\n  try: add center_crop with a size");
  EXPECT_EQ(refusal({{"center_crop", {{"size", 8.0}}}}, DType::i64),
            "transform: images of I64 are not supported (F32, BF16, F16 or U8)");
  EXPECT_EQ(refusal({{"center_crop", {{"size", 8.0}}}, {"normalize"}}, DType::u8),
            "transform: normalize: element type U8 cannot hold normalised values\n"
            "  try: omit normalize, and normalise on the device");
}

TEST(Transform, rejects_images_that_do_not_fit) {
  EXPECT_EQ(
      Applied({{"random_crop", {{"size", 8.0}, {"padding", 1.0}}}}, coordinates(5, 9)).status().to_string(),
      "image of 5 x 9 pixels is smaller than the crop of 8 x 8 (with padding)");
  EXPECT_EQ(
      Applied({{"resize", {{"size", 16384.0}}}, {"center_crop", {{"size", 8.0}}}}, coordinates(1, 100000))
          .status()
          .to_string(),
      "image of 1 x 100000 pixels is too narrow to be resized to 16384");
}

TEST(Transform, crops_apply_to_the_flipped_picture) {
  const Image image = coordinates(12, 10);
  const Operations flipped{{"center_crop", {{"size", Numbers{10, 12}}}},
                           {"random_horizontal_flip", {{"p", 1.0}}},
                           {"random_vertical_flip", {{"p", 1.0}}},
                           {"pad", {{"padding", Numbers{1, 0, 0, 0}}, {"fill", 9.0}}},
                           {"center_crop", {{"size", Numbers{10, 3}}}},
                           {"random_horizontal_flip", {{"p", 1.0}}}};
  const Applied applied(flipped, image);
  ASSERT_TRUE(applied.status().ok());
  // Seen after the flips: columns 12 .. 1, then one border before them: x = 5 of 13 is column 8.
  EXPECT_EQ(applied.at(0, 0, 2), 8);
  EXPECT_EQ(applied.at(0, 0, 0), 6);
  EXPECT_EQ(applied.at(1, 0, 0), 10);
  EXPECT_EQ(applied.at(1, 9, 0), 1);
}

TEST(Transform, a_small_image_gets_black_borders_from_a_centre_crop) {
  const Applied applied({{"center_crop", {{"size", 4.0}}}}, coordinates(3, 2));
  EXPECT_EQ(applied.at(2, 0, 0), 0);
  EXPECT_EQ(applied.at(0, 1, 0), 1);
  EXPECT_EQ(applied.at(1, 1, 0), 1);
  EXPECT_EQ(applied.at(0, 2, 2), 3);
  EXPECT_EQ(applied.at(2, 1, 3), 0);
  EXPECT_EQ(applied.at(2, 3, 0), 0);
}

TEST(Transform, element_types_and_layouts_hold_the_same_values) {
  const Image image = coordinates(9, 7);
  const Operations operations{
      {"random_crop", {{"size", Numbers{7, 8}}, {"padding", 2.0}}},
      {"random_horizontal_flip"},
      {"normalize", {{"mean", Numbers{0.4, 0.5, 0.6}}, {"std", Numbers{0.2, 0.3, 0.01}}}}};
  for (std::uint64_t sample = 0; sample < 20; ++sample) {
    const SampleKey sample_key{1, 2, sample};
    const Applied reference(operations, image, sample_key);
    for (DType element : {DType::f32, DType::bf16, DType::f16}) {
      for (ImageLayout layout : {ImageLayout::nchw, ImageLayout::nhwc}) {
        const Transform transform = Transform::create({operations, element, layout}).value();
        TransformScratch scratch;
        std::vector<std::byte> out(transform.bytes());
        ASSERT_TRUE(transform.apply(image.view(), sample_key, scratch, out).ok());
        for (std::size_t i = 0; i < transform.elements(); ++i) {
          const std::size_t c = i / 56, y = i / 8 % 7, x = i % 8;
          const std::size_t at = layout == ImageLayout::nchw ? i : (y * 8 + x) * 3 + c;
          const float expected = reference.values()[i];
          if (element == DType::f32) {
            float found;
            std::memcpy(&found, out.data() + 4 * at, 4);
            ASSERT_EQ(found, expected);
          } else {
            std::uint16_t found;
            std::memcpy(&found, out.data() + 2 * at, 2);
            ASSERT_EQ(found, element == DType::bf16 ? to_bf16(expected) : to_f16(expected));
          }
        }
      }
    }
  }
}

TEST(SampleWriter, sixteen_bit_floats_are_rounded_to_nearest_even) {
  EXPECT_EQ(to_bf16(1.0f), 0x3F80);
  EXPECT_EQ(to_bf16(1.00390625f), 0x3F80);  // half way, down to even
  EXPECT_EQ(to_bf16(1.01171875f), 0x3F82);  // half way, up to even
  EXPECT_EQ(to_bf16(-2.117904f), 0xC008);
  EXPECT_EQ(to_f16(1.0f), 0x3C00);
  EXPECT_EQ(to_f16(-2.0f), 0xC000);
  EXPECT_EQ(to_f16(1.00048828125f), 0x3C00);
  EXPECT_EQ(to_f16(1.00146484375f), 0x3C02);
  EXPECT_EQ(to_f16(65504.0f), 0x7BFF);
  EXPECT_EQ(to_f16(65520.0f), 0x7C00);
  EXPECT_EQ(to_f16(0x1p-14f), 0x0400);
  EXPECT_EQ(to_f16(0x1p-24f), 0x0001);
  EXPECT_EQ(to_f16(0x1p-26f), 0x0000);
  EXPECT_EQ(to_f16(0x1.ffep-15f), 0x0400);
  EXPECT_EQ(to_f16(0.0f), 0x0000);
}

TEST(Recipe, each_can_be_applied) {
  for (std::string_view name : recipe_names()) {
    SCOPED_TRACE(name);
    const Applied applied(recipe(name).value(), coordinates(100, 80));
    EXPECT_TRUE(applied.status().ok()) << applied.status().to_string();
    EXPECT_EQ(applied.values().size(), name.starts_with("cifar") ? 3u * 32 * 32 : 3u * 224 * 224);
  }
  EXPECT_EQ(recipe("imagenet-trian").status().to_string(),
            "transform: unknown recipe 'imagenet-trian'; did you mean 'imagenet-train'?");
}

TEST(TransformOperation, to_text_is_canonical) {
  EXPECT_EQ(to_text(TransformOperation{"RandomResizedCrop",
                                       {{"size", 224.0},
                                        {"scale", Numbers{0.25, 1}},
                                        {"interpolation", std::string("bicubic")},
                                        {"antialias", true}}}),
            "random_resized_crop(antialias=true, interpolation=bicubic, scale=[0.25, 1], size=224)");
  EXPECT_EQ(canonical_name("CenterCrop"), "center_crop");
  EXPECT_EQ(canonical_name("random_crop"), "random_crop");
}

// As pattern() in make_images.py.
Image pattern(std::uint32_t width, std::uint32_t height) {
  Image image{width, height, {}};
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      for (std::uint32_t c = 0; c < 3; ++c) {
        const std::uint32_t bits = x * 2654435761u + y * 40503u * (c + 1) + x * y * 977u + c * 7919u;
        image.pixels.push_back(static_cast<std::uint8_t>(bits >> 9));
      }
    }
  }
  return image;
}

// The hash of the part of `image` that `row` names, resized to its size.
std::string resized_hash(Resizer& resizer, const ImageView& image, const nlohmann::json& row) {
  const std::array<std::uint32_t, 4> box = row["box"];
  const std::array<std::uint32_t, 2> size = row["size"];
  constexpr std::string_view kFilters[] = {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"};
  const auto* filter = std::find(std::begin(kFilters), std::end(kFilters), row["filter"].get<std::string>());
  resizer.start({{box[0], box[1], box[2] - box[0], box[3] - box[1]},
                 size[0],
                 size[1],
                 {0, 0, size[0], size[1]},
                 static_cast<ResizeFilter>(filter - std::begin(kFilters))});
  resizer.set_source({image});
  return hex(sha256(std::as_bytes(resizer.all().pixels)));
}

TEST(Resizer, equals_pillow) {
  const nlohmann::json reference = golden("images.json");
  const std::string source = from_base64(reference["resize_source"]);
  const ImageView image{37, 23, {reinterpret_cast<const std::uint8_t*>(source.data()), source.size()}};
  Resizer resizer;
  ASSERT_GE(reference["resized"].size(), 42u);
  for (const auto& row : reference["resized"])
    EXPECT_EQ(resized_hash(resizer, image, row), row["sha256"].get<std::string>()) << row.dump();
}

TEST(Resizer, equals_pillow_for_tall_images_and_for_ties) {
  const nlohmann::json reference = golden("images.json");
  Resizer resizer;
  ASSERT_GE(reference["resized_patterns"].size(), 72u);
  for (const auto& row : reference["resized_patterns"]) {
    const Image image = pattern(row["source"][0], row["source"][1]);
    EXPECT_EQ(resized_hash(resizer, image.view(), row), row["sha256"].get<std::string>()) << row.dump();
  }
}

TEST(Resizer, a_window_of_a_tall_image_equals_that_part_of_the_whole) {
  const Image image = pattern(60, 300);
  Resizer resizer;
  const ResizeTask whole{{4, 10, 50, 280}, 40, 61, {0, 0, 40, 61}, ResizeFilter::bicubic};
  resizer.start(whole);
  resizer.set_source({image.view()});
  const ImageView all = resizer.all();
  const std::vector<std::uint8_t> pixels(all.pixels.begin(), all.pixels.end());
  ResizeTask part = whole;
  part.window = {7, 13, 21, 30};
  resizer.start(part);
  // Only the needed region, with nothing behind its end.
  const ImageRegion needed = resizer.needed();
  Image region{needed.width, needed.height, {}};
  for (std::uint32_t y = 0; y < needed.height; ++y) {
    const auto row = image.pixels.begin() + 3 * (std::ptrdiff_t{needed.y + y} * image.width + needed.x);
    region.pixels.insert(region.pixels.end(), row, row + 3 * std::ptrdiff_t{needed.width});
  }
  resizer.set_source({region.view(), needed.x, needed.y});
  for (const std::uint32_t y : {29u, 0u, 1u, 2u, 3u, 4u, 28u}) {  // in any order
    const std::uint8_t* row = resizer.row(y);
    for (std::uint32_t i = 0; i < 3 * 21; ++i)
      ASSERT_EQ(row[i], pixels[3 * ((y + 13) * 40 + 7) + i]) << y << ", " << i;
  }
}

}  // namespace
}  // namespace stoker::image
