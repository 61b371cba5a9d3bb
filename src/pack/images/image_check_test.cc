#include "pack/images/image_check.h"

#include <gtest/gtest.h>

#include "stoker/text.h"

namespace stoker::pack {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (int v : values) text += static_cast<char>(v);
  return text;
}

ImageVerdict scan(const std::string& text) { return scan_image(std::as_bytes(std::span(text))); }

// The header of a grey 8x8 JPEG without tables, which only decoding needs.
std::string jpeg_head() {
  return bytes({0xFF, 0xD8}) + bytes({0xFF, 0xE0, 0, 4, 'h', 'i'}) +
         bytes({0xFF, 0xC0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0}) +
         bytes({0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0});
}

TEST(ScanImage, a_jpeg_whose_first_scan_is_of_no_component_of_its_frame_is_broken) {
  const std::string head = jpeg_head();
  const std::string end = bytes({0x11, 0xFF, 0xD9});
  EXPECT_TRUE(scan(head + end).is_good);
  const std::size_t components = head.size() - 6;
  for (const auto& [at, value] :
       {std::pair(components, '\0'), std::pair(components, '\2'), std::pair(components + 1, '\7')}) {
    std::string other = head + end;
    other[at] = value;
    EXPECT_EQ(scan(other).reason, "broken") << at;
  }
}

TEST(ScanImage, a_jpeg_with_a_marker_that_its_library_refuses_is_broken) {
  const std::string head = jpeg_head();
  const std::string end = bytes({0x11, 0xFF, 0xD9});
  EXPECT_TRUE(scan(head.substr(0, 2) + bytes({0xFF, 0xDD, 0, 4, 0, 1}) + head.substr(2) + end).is_good);
  for (const std::string& segment :
       {bytes({0xFF, 0x0B, 0, 2}), bytes({0xFF, 0xC8, 0, 2}), bytes({0xFF, 0xF0, 0, 2}),
        bytes({0xFF, 0xDD, 0, 5, 0, 1, 0}), bytes({0xFF, 0xD8})}) {
    EXPECT_EQ(scan(head.substr(0, 2) + segment + head.substr(2) + end).reason, "broken")
        << hex(std::as_bytes(std::span(segment)));
  }
}

TEST(ScanImage, a_jpeg_whose_first_scan_names_a_component_twice_is_broken) {
  const std::string end = bytes({0x11, 0xFF, 0xD9});
  const auto jpeg = [&](int first, int second) {
    return bytes({0xFF, 0xD8}) +
           bytes({0xFF, 0xC0, 0, 17, 8, 0, 8, 0, 8, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0}) +
           bytes({0xFF, 0xDA, 0, 10, 2, first, 0, second, 0, 0, 63, 0}) + end;
  };
  EXPECT_TRUE(scan(jpeg(1, 3)).is_good);
  EXPECT_TRUE(scan(jpeg(2, 3)).is_good);
  EXPECT_EQ(scan(jpeg(1, 1)).reason, "broken");
  EXPECT_EQ(scan(jpeg(3, 3)).reason, "broken");
  EXPECT_EQ(scan(jpeg(1, 4)).reason, "broken");
}

TEST(ScanImage, accepts_a_jpeg_that_ends_with_its_marker) {
  const ImageVerdict verdict = scan(jpeg_head() + bytes({1, 2, 0xFF, 0, 3, 0xFF, 0xD0, 4, 0xFF, 0xD9}));
  EXPECT_TRUE(verdict.is_good) << verdict.reason << ": " << verdict.detail;
  EXPECT_EQ(verdict.info.width, 8u);
}

TEST(ScanImage, a_jpeg_that_is_wider_than_its_library_takes_is_broken) {
  std::string jpeg = jpeg_head() + bytes({0x11, 0xFF, 0xD9});
  const std::size_t width = jpeg.find(bytes({0xFF, 0xC0})) + 7;
  jpeg.replace(width, 2, bytes({0xFF, 0xDC}));  // 65 500
  EXPECT_TRUE(scan(jpeg).is_good);
  jpeg.replace(width, 2, bytes({0xFF, 0xDD}));
  EXPECT_EQ(scan(jpeg).reason, "broken");
}

TEST(ScanImage, ignores_what_follows_the_image) {
  EXPECT_TRUE(scan(jpeg_head() + bytes({1, 0xFF, 0xD9}) + "trailer").is_good);
}

TEST(ScanImage, finds_every_truncation_of_a_jpeg) {
  const std::string whole = jpeg_head() + bytes({1, 2, 0xFF, 0, 3, 0xFF, 0xD9});
  for (std::size_t length = 3; length < whole.size(); ++length) {
    EXPECT_EQ(scan(whole.substr(0, length)).reason, "truncated") << length;
  }
  // A truncated copy, padded with zeros.
  EXPECT_EQ(scan(whole.substr(0, whole.size() - 2) + std::string(4096, '\0')).reason, "truncated");
}

TEST(ScanImage, distinguishes_a_broken_header_from_truncation) {
  const ImageVerdict no_data = scan(bytes({0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 'h', 'i', 0xFF, 0xD9}));
  EXPECT_EQ(no_data.reason, "broken");
  EXPECT_EQ(no_data.detail, "JPEG without image data");
  EXPECT_EQ(scan(bytes({0xFF, 0xD8, 0xFF, 0xE0, 0, 1, 0, 0, 0, 0})).detail,
            "JPEG segment of length 1 at byte 4");
}

TEST(ScanImage, reports_non_images) {
  EXPECT_EQ(scan("").reason, "empty");
  EXPECT_EQ(scan("<html>").reason, "not an image");
  EXPECT_EQ(scan("GIF89a").reason, "not an image");
}

TEST(ScanImage, checks_the_crc_of_every_png_chunk) {
  // 1x1, one grey byte; from a stock encoder.
  const std::string png =
      bytes({0x89, 'P',  'N',  'G',  13,  10,  26,  10,   0,    0,    0,    13,  'I',  'H',  'D',  'R',  0,
             0,    0,    1,    0,    0,   0,   1,   8,    0,    0,    0,    0,   0x3A, 0x7E, 0x9B, 0x55, 0,
             0,    0,    10,   'I',  'D', 'A', 'T', 0x78, 0x9C, 0x63, 0x60, 0,   0,    0,    2,    0,    1,
             0x48, 0xAF, 0xA4, 0x71, 0,   0,   0,   0,    'I',  'E',  'N',  'D', 0xAE, 0x42, 0x60, 0x82});
  EXPECT_TRUE(scan(png).is_good) << scan(png).detail;
  for (std::size_t i = 8; i < png.size(); ++i) {
    std::string damaged = png;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(scan(damaged).is_good) << i;
    EXPECT_FALSE(scan(png.substr(0, i)).is_good) << i;
  }
}

}  // namespace
}  // namespace stoker::pack
