#include "image/decode/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/golden_test.h"

namespace stoker::image {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

Status decode(const std::string& bytes, DecodeLimits limits = {}) {
  Image image;
  return decode_image(bytes_of(bytes), image, limits);
}

TEST(Decode, equals_pillow) {
  const nlohmann::json reference = golden("images.json");
  ASSERT_GE(reference["images"].size(), 15u);
  Image image;
  for (const auto& row : reference["images"]) {
    SCOPED_TRACE(row["name"]);
    const Status status = decode_image(bytes_of(from_base64(row["bytes"])), image);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(image.width, row["width"].get<std::uint32_t>());
    EXPECT_EQ(image.height, row["height"].get<std::uint32_t>());
    EXPECT_EQ(hex(sha256(std::as_bytes(std::span(image.pixels)))), row["rgb_sha256"].get<std::string>());
  }
}

TEST(Decode, of_a_truncated_image_is_an_error_at_every_length) {
  const nlohmann::json reference = golden("images.json");
  for (const auto& row : reference["images"]) {
    const std::string whole = from_base64(row["bytes"]);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const Status status = decode(whole.substr(0, length));
      ASSERT_FALSE(status.ok()) << row["name"] << " cut at " << length << " of " << whole.size();
      ASSERT_THAT(status.code(), AnyOf(Code::corrupt, Code::invalid)) << status.to_string();
    }
  }
}

TEST(Decode, errors_name_the_cause) {
  const std::string jpeg = golden_image("baseline.jpg");
  EXPECT_EQ(decode("").to_string(), "not an image: 0 bytes");
  EXPECT_EQ(decode("GIF89a").to_string(), "not a JPEG, PNG or WebP image: starts with 47494638");
  EXPECT_EQ(decode(jpeg.substr(0, jpeg.size() / 2)).to_string(), "JPEG: ends before the image is complete");
  EXPECT_EQ(decode(jpeg.substr(0, 20)).to_string(), "JPEG: ends before the image is complete");
  const std::string png = golden_image("rgb.png");
  EXPECT_EQ(decode(png.substr(0, png.size() - 20)).to_string(), "PNG: ends before the image is complete");
  std::string flipped = png;
  flipped[png.size() / 2] ^= 1;
  EXPECT_THAT(decode(flipped).to_string(), HasSubstr("PNG: "));
  const std::string webp = golden_image("lossy.webp");
  EXPECT_EQ(decode(webp.substr(0, webp.size() - 20)).to_string(), "WebP: ends before the image is complete");
  EXPECT_EQ(decode(from_base64(golden("images.json")["animation"])).to_string(),
            "WebP: animations are not supported");
}

TEST(Decode, refuses_large_images_before_allocating) {
  for (const char* name : {"baseline.jpg", "rgb.png", "lossy.webp"}) {
    EXPECT_TRUE(decode(golden_image(name), {.pixels = 851}).ok());
    EXPECT_THAT(decode(golden_image(name), {.pixels = 850}).to_string(),
                HasSubstr(": 37 x 23 pixels are too many (at most 850)"));
  }
}

TEST(Decode, uses_no_table_of_the_previous_image) {
  std::string without_tables = golden_image("baseline.jpg");
  // 0xFFDB defines quantisation tables; as an application segment it is skipped.
  for (std::size_t i; (i = without_tables.find("\xFF\xDB")) != std::string::npos;)
    without_tables[i + 1] = '\xEF';
  EXPECT_TRUE(decode(golden_image("baseline.jpg")).ok());
  EXPECT_EQ(decode(without_tables).to_string(), "JPEG: Quantization table 0x00 was not defined");
}

TEST(Decode, flipped_bits_yield_pixels_or_an_error) {
  for (const char* name : {"progressive.jpg", "cmyk.jpg", "palette.png", "lossless.webp"}) {
    const std::string whole = golden_image(name);
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      Image image;
      if (decode_image(bytes_of(damaged), image, {.pixels = 1 << 20}).ok()) {
        EXPECT_EQ(image.pixels.size(), std::size_t{3} * image.width * image.height);
      }
    }
  }
}

TEST(Inspect, reads_size_channels_and_progression_from_the_header) {
  const auto info = [](const char* name) { return inspect_image(bytes_of(golden_image(name))).value(); };
  EXPECT_EQ(info("baseline.jpg"), (ImageInfo{ImageKind::jpeg, 37, 23, 3, false}));
  EXPECT_EQ(info("progressive.jpg"), (ImageInfo{ImageKind::jpeg, 37, 23, 3, true}));
  EXPECT_EQ(info("grey.jpg"), (ImageInfo{ImageKind::jpeg, 37, 23, 1, false}));
  EXPECT_EQ(info("cmyk.jpg"), (ImageInfo{ImageKind::jpeg, 37, 23, 4, false}));
  EXPECT_EQ(info("palette.png"), (ImageInfo{ImageKind::png, 37, 23, 3, false}));
  EXPECT_EQ(info("alpha.png"), (ImageInfo{ImageKind::png, 37, 23, 4, false}));
  EXPECT_EQ(info("lossy.webp"), (ImageInfo{ImageKind::webp, 37, 23, 3, false}));
  EXPECT_EQ(info("alpha.webp"), (ImageInfo{ImageKind::webp, 37, 23, 4, false}));
}

}  // namespace
}  // namespace stoker::image
