#include "image/decode/exif.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::image {
namespace {

unsigned orientation(std::string_view file) { return exif_orientation(std::as_bytes(std::span(file))); }

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

// A directory with a width and an orientation.
std::string tiff(bool is_big_endian, int value, int type = 3) {
  return is_big_endian
             ? "MM" + bytes({0, 42, 0, 0, 0, 8, 0, 2}) + bytes({1, 0, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0}) +
                   bytes({1, 0x12, 0, type, 0, 0, 0, 1, 0, value, 0, 0}) + bytes({0, 0, 0, 0})
             : "II" + bytes({42, 0, 8, 0, 0, 0, 2, 0}) + bytes({0, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0}) +
                   bytes({0x12, 1, type, 0, 1, 0, 0, 0, value, 0, 0, 0}) + bytes({0, 0, 0, 0});
}

std::string jpeg(const std::string& block) {
  const std::string app1 = std::string("Exif\0\0", 6) + block;
  const auto length = static_cast<int>(app1.size() + 2);
  return bytes({0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xFF, 0xE1, length >> 8, length & 255}) + app1 +
         bytes({0xFF, 0xDA, 0, 2});
}

std::string png(const std::string& block) {
  return bytes({0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 1}) + "IHDRx" + bytes({1, 2, 3, 4, 0, 0, 0}) +
         static_cast<char>(block.size()) + "eXIf" + block + bytes({1, 2, 3, 4});
}

std::string webp(const std::string& block) {
  return "RIFF" + bytes({0, 1, 0, 0}) + "WEBPVP8X" + bytes({3, 0, 0, 0, 1, 2, 3, 0}) + "EXIF" +
         static_cast<char>(block.size()) + bytes({0, 0, 0}) + block;
}

TEST(Exif, orientation_is_found_in_every_kind_of_file) {
  for (const bool is_big_endian : {true, false}) {
    for (int value = 1; value <= 8; ++value) {
      const std::string block = tiff(is_big_endian, value);
      EXPECT_EQ(orientation(jpeg(block)), value);
      EXPECT_EQ(orientation(png(block)), value);
      EXPECT_EQ(orientation(webp(block)), value);
      EXPECT_EQ(orientation(webp(std::string("Exif\0\0", 6) + block)), value);
    }
  }
}

TEST(Exif, files_without_a_valid_orientation_are_upright) {
  EXPECT_EQ(orientation(""), 1u);
  EXPECT_EQ(orientation("GIF89a"), 1u);
  EXPECT_EQ(orientation(jpeg("")), 1u);
  EXPECT_EQ(orientation(jpeg(tiff(true, 0))), 1u);
  EXPECT_EQ(orientation(jpeg(tiff(true, 9))), 1u);
  EXPECT_EQ(orientation(jpeg(tiff(false, 6, 4))), 1u);
  // After the first scan there is no header.
  EXPECT_EQ(orientation(bytes({0xFF, 0xD8, 0xFF, 0xDA, 0, 2}) + jpeg(tiff(true, 6)).substr(2)), 1u);
}

TEST(Exif, cut_files_are_read_within_their_bounds) {
  for (const std::string& whole : {jpeg(tiff(true, 6)), png(tiff(false, 6)), webp(tiff(true, 6))}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const unsigned found = orientation({cut.data(), cut.size()});
      EXPECT_TRUE(found == 1 || found == 6) << size;
    }
  }
  std::string many = jpeg(tiff(true, 6));
  many[many.find("MM") + 8] = '\xFF';  // promises 65282 entries
  many[many.find("MM") + 9] = '\x02';
  EXPECT_EQ(orientation(many), 6u);
}

}  // namespace
}  // namespace stoker::image
