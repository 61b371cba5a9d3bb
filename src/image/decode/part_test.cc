#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/golden_test.h"
#include "image/decode/decode.h"
#include "image/decode/jpeg_splice.h"

namespace stoker::image {
namespace {

ImageRegion random_part(std::mt19937& chance, std::uint32_t width, std::uint32_t height) {
  ImageRegion part;
  part.width = 1 + chance() % width;
  part.height = 1 + chance() % height;
  part.x = chance() % (width - part.width + 1);
  part.y = chance() % (height - part.height + 1);
  return part;
}

// Whether `part` equals its region of `whole`. `held` begins at `at`.
bool same_pixels(const Image& whole, const ImageRegion& part, const Image& held, const ImageRegion& at) {
  if (at.x > part.x || at.y > part.y || held.width != at.width || held.height != at.height) return false;
  if (at.x + at.width < part.x + part.width || at.y + at.height < part.y + part.height) return false;
  for (std::uint32_t y = 0; y < part.height; ++y) {
    const auto* a = whole.pixels.data() + 3 * (std::size_t{part.y + y} * whole.width + part.x);
    const auto* b = held.pixels.data() + 3 * (std::size_t{part.y + y - at.y} * held.width + part.x - at.x);
    if (!std::equal(a, a + std::size_t{3} * part.width, b)) return false;
  }
  return true;
}

TEST(Decoder, parts_equal_the_whole_image) {
  const nlohmann::json reference = golden("images.json");
  std::mt19937 chance(1);
  Decoder decoder;
  Image whole, held;
  for (const auto& row : reference["images"]) {
    const std::string bytes = from_base64(row["bytes"]);
    ASSERT_TRUE(decode_image(bytes_of(bytes), whole).ok());
    for (int i = 0; i < 200; ++i) {
      const ImageRegion part = random_part(chance, whole.width, whole.height);
      ASSERT_TRUE(decoder.open(bytes_of(bytes)).ok());
      ImageRegion got;
      const Status status = decoder.decode(part, held, got);
      ASSERT_TRUE(status.ok()) << row["name"] << ": " << status.to_string();
      ASSERT_TRUE(same_pixels(whole, part, held, got))
          << row["name"] << " " << part.x << " " << part.y << " " << part.width << " " << part.height;
    }
  }
}

TEST(Decoder, parts_of_a_progressive_image_with_missing_scans_equal_the_whole) {
  const std::string bytes = golden_image("progressive.jpg");
  std::mt19937 chance(2);
  Decoder decoder;
  Image whole, held;
  int images = 0;
  for (std::size_t scan = bytes.find("\xFF\xDA"); scan != std::string::npos;
       scan = bytes.find("\xFF\xDA", scan + 2), ++images) {
    const std::string cut = bytes.substr(0, scan) + "\xFF\xD9";
    if (!decode_image(bytes_of(cut), whole).ok()) continue;  // not a whole image
    for (int i = 0; i < 100; ++i) {
      const ImageRegion part = random_part(chance, whole.width, whole.height);
      ASSERT_TRUE(decoder.open(bytes_of(cut)).ok());
      ImageRegion got;
      ASSERT_TRUE(decoder.decode(part, held, got).ok());
      ASSERT_TRUE(same_pixels(whole, part, held, got)) << "scan at " << scan;
    }
  }
  EXPECT_GT(images, 3);
}

TEST(Decoder, rows_after_the_region_are_not_read) {
  const std::string bytes = golden_image("baseline.jpg");
  const std::string cut = bytes.substr(0, bytes.size() - 40);
  Image image;
  EXPECT_EQ(decode_image(bytes_of(cut), image).to_string(), "JPEG: ends before the image is complete");
  Decoder decoder;
  ImageRegion got;
  ASSERT_TRUE(decoder.open(bytes_of(cut)).ok());
  EXPECT_TRUE(decoder.decode({0, 0, 30, 4}, image, got).ok());
  ASSERT_TRUE(decoder.open(bytes_of(cut)).ok());
  EXPECT_EQ(decoder.decode({0, 0, 30, 20}, image, got).to_string(),
            "JPEG: ends before the image is complete");
}

TEST(Splice, copies_only_the_needed_restart_intervals) {
  const std::string bytes = golden_image("restarts-444.jpg");  // 37 x 23: 5 x 3 MCUs, one in each interval
  const auto layout = codecs::restart_layout(bytes_of(bytes));
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->columns, 5u);
  EXPECT_EQ(layout->cell_width, 8u);
  EXPECT_EQ(layout->cell_height, 8u);
  codecs::Splicer splicer;
  ImageRegion got;
  const auto part = splicer.splice(bytes_of(bytes), *layout, {17, 9, 3, 2}, got);
  ASSERT_TRUE(part);
  EXPECT_EQ(got, (ImageRegion{16, 8, 8, 8}));
  EXPECT_LT(part->size(), bytes.size());
  const auto corner = splicer.splice(bytes_of(bytes), *layout, {30, 20, 7, 3}, got);
  ASSERT_TRUE(corner);
  EXPECT_EQ(got, (ImageRegion{24, 16, 13, 7}));
  Image image;
  EXPECT_TRUE(decode_image(*corner, image).ok());
  EXPECT_FALSE(splicer.splice(bytes_of(bytes), *layout, {0, 0, 37, 23}, got)) << "that is all of it";
}

TEST(Splice, requires_rectangular_restart_intervals) {
  EXPECT_FALSE(codecs::restart_layout(bytes_of(golden_image("baseline.jpg"))));
  EXPECT_FALSE(codecs::restart_layout(bytes_of(golden_image("progressive.jpg"))));
  EXPECT_FALSE(codecs::restart_layout(bytes_of(golden_image("rgb.png"))));
  EXPECT_FALSE(codecs::restart_layout(bytes_of(golden_image("restarts.jpg"))))
      << "3 MCUs in a row, 2 in an interval";
  std::string lost = golden_image("restarts-444.jpg");
  const auto layout = codecs::restart_layout(bytes_of(lost));
  ASSERT_TRUE(layout);
  const std::size_t at = lost.find("\xFF\xD2");
  ASSERT_NE(at, std::string::npos);
  lost[at + 1] = '\xD3';
  codecs::Splicer splicer;
  ImageRegion got;
  EXPECT_FALSE(splicer.splice(bytes_of(lost), *layout, {17, 9, 3, 2}, got));
}

TEST(Decoder, flipped_bits_yield_pixels_or_an_error) {
  std::mt19937 chance(2);
  Decoder decoder;
  Image image;
  for (const char* name : {"baseline.jpg", "progressive.jpg", "restarts-444.jpg", "grey.jpg"}) {
    const std::string whole = golden_image(name);
    for (std::size_t bit = 0; bit < whole.size() * 8; bit += 3) {
      std::string damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      const auto info = decoder.open(bytes_of(damaged), {.pixels = 1 << 20});
      if (!info) continue;
      ImageRegion got;
      const ImageRegion part = random_part(chance, info->width, info->height);
      if (!decoder.decode(part, image, got).ok()) continue;
      EXPECT_EQ(image.pixels.size(), std::size_t{3} * got.width * got.height);
      EXPECT_LE(got.x, part.x);
      EXPECT_LE(part.x + part.width, got.x + got.width);
    }
  }
}

}  // namespace
}  // namespace stoker::image
