#include "image/decode/jpeg_rewrite.h"

#include <string>

#include <gtest/gtest.h>

#include "base/golden_test.h"
#include "image/decode/decode.h"

namespace stoker::image {
namespace {

TEST(RestartInterval, divides_a_row_and_is_near_four) {
  EXPECT_EQ(restart_interval(32), 4u);
  EXPECT_EQ(restart_interval(30), 5u);
  EXPECT_EQ(restart_interval(63), 3u);
  EXPECT_EQ(restart_interval(14), 7u);
  EXPECT_EQ(restart_interval(22), 2u);
  EXPECT_EQ(restart_interval(31), 31u);  // a prime: once a row
  EXPECT_EQ(restart_interval(1), 1u);
}

TEST(RewriteJpeg, rejects_damaged_and_truncated_files) {
  const std::string text = "no JPEG";
  EXPECT_EQ(rewrite_jpeg(std::as_bytes(std::span(text)), RestartMarkers::some).error().message(),
            "JPEG: Not a JPEG file: starts with 0x6e 0x6f");
  EXPECT_FALSE(rewrite_jpeg({}, RestartMarkers::none).ok());
}

constexpr std::string_view kEnd = "\xFF\xD9";

// The segment that begins with `text` behind its marker and length.
std::string segment(const std::string& jpeg, std::string_view text) {
  const std::size_t begin = jpeg.find(text) - 4;
  const auto byte = [&](std::size_t i) { return std::size_t{static_cast<std::uint8_t>(jpeg[begin + i])}; };
  return jpeg.substr(begin, 2 + (byte(2) << 8 | byte(3)));
}

std::string without(std::string jpeg, const std::string& part) {
  return jpeg.erase(jpeg.find(part), part.size());
}

std::vector<std::uint8_t> pixels(std::string_view jpeg) {
  Image image;
  EXPECT_TRUE(decode_image(bytes_of(std::string(jpeg)), image).ok());
  return std::move(image.pixels);
}

std::string turned(const std::string& jpeg) {
  const auto made = rewrite_jpeg(bytes_of(jpeg), RestartMarkers::some);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return made.ok() ? std::string(reinterpret_cast<const char*>(made->data()), made->size()) : "";
}

TEST(RewriteJpeg, markers_behind_the_image_data_change_no_colours) {
  const std::string bytes = golden_image("444.jpg");
  const std::string jfif = segment(bytes, "JFIF");
  const std::string adobe(
      "\xFF\xEE\0\x0E"
      "Adobe\0\x64\0\0\0\0\0",
      16);  // RGB
  std::string red = without(bytes, jfif);
  red.insert(2, adobe);
  ASSERT_NE(pixels(red), pixels(bytes));
  red.insert(red.size() - kEnd.size(), jfif);
  EXPECT_EQ(pixels(turned(red)), pixels(red));
  std::string blue = bytes;
  blue.insert(blue.size() - kEnd.size(), adobe);
  EXPECT_EQ(pixels(turned(blue)), pixels(blue));
}

TEST(RewriteJpeg, keeps_the_adobe_marker_of_inverted_cmyk) {
  const std::string bytes = golden_image("cmyk.jpg");
  const std::string adobe = segment(bytes, "Adobe");
  EXPECT_NE(turned(bytes).find("Adobe"), std::string::npos);
  EXPECT_EQ(turned(without(bytes, adobe)).find("Adobe"), std::string::npos);
}

TEST(RewriteJpeg, keeps_a_progressive_image_without_its_last_scans) {
  const std::string bytes = golden_image("progressive.jpg");
  const std::string cut = bytes.substr(0, bytes.rfind("\xFF\xDA")) + std::string(kEnd);
  ASSERT_FALSE(pixels(cut).empty());
  EXPECT_EQ(rewrite_jpeg(bytes_of(cut), RestartMarkers::none).error().code(), Code::invalid);
  EXPECT_EQ(pixels(turned(bytes)), pixels(bytes));
}

}  // namespace
}  // namespace stoker::image
