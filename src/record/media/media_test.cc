#include "record/media/media.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/encode.h"
#include "base/file.h"
#include "image/encode.h"

namespace stoker::record {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

ValueHistogram counted_bins(std::vector<double> values, int bins) { return *histogram_of(values, bins); }

std::vector<std::byte> png(std::uint32_t side) {
  return *image::encode_png(side, side, 1, std::vector<std::byte>(std::size_t{side} * side, std::byte{7}));
}

MediaRecord picture(std::uint32_t side = 3) {
  return {.time = 12.5, .step = 7, .name = "samples", .content = *image_of(png(side))};
}

TEST(Media, bins_of_equal_width_count_the_values) {
  const ValueHistogram histogram = counted_bins({0, 0.9, 1, 2.5, 3.9, 4, 4}, 4);
  EXPECT_THAT(histogram.counts, ElementsAre(2, 1, 1, 3));
  EXPECT_EQ(histogram.lowest, 0);
  EXPECT_EQ(histogram.highest, 4);
  EXPECT_EQ(histogram.edge(1), 1);
  EXPECT_EQ(histogram.edge(4), 4);
  EXPECT_EQ(histogram.count(), 7u);
  EXPECT_DOUBLE_EQ(histogram.sum, 16.3);
  EXPECT_DOUBLE_EQ(counted_bins({0, 1, 2, 3}, 2).quantile(0.25), 0.75);
}

TEST(Media, values_that_are_not_finite_are_counted_apart) {
  const ValueHistogram histogram = counted_bins({kNan, 1, kInf, 2, -kInf}, 2);
  EXPECT_THAT(histogram.counts, ElementsAre(1, 1));
  EXPECT_EQ(histogram.not_finite, 3u);
  const ValueHistogram nothing = counted_bins({kNan, kNan}, 8);
  EXPECT_THAT(nothing.counts, ElementsAre(0));
  EXPECT_EQ(nothing.not_finite, 2u);
  EXPECT_TRUE(std::isnan(nothing.quantile(0.5)));
}

TEST(Media, equal_and_extreme_values_have_bins) {
  EXPECT_THAT(counted_bins({5, 5, 5}, 64).counts, ElementsAre(3));
  const double most = std::numeric_limits<double>::max();
  const ValueHistogram wide = counted_bins({-most, 0, most}, 3);
  EXPECT_THAT(wide.counts, ElementsAre(1, 1, 1));
  EXPECT_TRUE(std::isfinite(wide.edge(1)) && std::isfinite(wide.sum_squares));
  const double least = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(counted_bins({0, least, 3 * least}, 512).count(), 3u);
  EXPECT_TRUE(parse_media(media_line({.name = "w", .content = wide}).c_str()).has_value());
}

TEST(Media, wrong_numbers_of_values_and_bins_are_refused) {
  EXPECT_EQ(histogram_of(std::span<const double>(), 4).error().message(), "there are no values");
  const std::vector<float> one = {1};
  EXPECT_EQ(histogram_of(one, 0).error().message(), "bins is 0, must be from 1 to 512");
  EXPECT_FALSE(histogram_of(one, 513).ok());
}

TEST(Media, only_small_png_and_jpeg_files_are_images) {
  EXPECT_THAT(image_of(std::vector<std::byte>(100)).error().message(), HasSubstr("neither a PNG nor a JPEG"));
  EXPECT_THAT(image_of(std::vector<std::byte>(kMostImageBytes + 1)).error().message(),
              HasSubstr(format("has {} bytes, at most {} are recorded", grouped(kMostImageBytes + 1),
                               grouped(kMostImageBytes))));
  EXPECT_THAT(image_of(png(8193)).error().message(), HasSubstr("8193 x 8193 pixels, at most 8192"));
  EXPECT_EQ(image_of(png(3))->type, "png");
}

TEST(Media, a_line_is_read_back) {
  const MediaRecord image = picture();
  const std::string line = media_line(image);
  EXPECT_THAT(
      line,
      HasSubstr(R"({"time":12.5,"step":7,"name":"samples","image":{"type":"png","width":3,"height":3,)"));
  const auto again = parse_media(std::string_view(line).substr(0, line.size() - 1));
  ASSERT_TRUE(again && again->image());
  EXPECT_EQ(again->image()->bytes, image.image()->bytes);
  EXPECT_EQ(again->name, "samples");
  EXPECT_EQ(again->step, 7);
  const auto histogram =
      parse_media(media_line({.step = 3, .name = "w", .content = counted_bins({1, 2}, 2)}));
  ASSERT_TRUE(histogram && histogram->histogram());
  EXPECT_THAT(histogram->histogram()->counts, ElementsAre(1, 1));
}

TEST(Media, every_flipped_byte_of_an_image_is_noticed) {
  const std::string line = media_line(picture());
  const std::size_t data = line.find("\"base64\":\"") + 10;
  for (std::size_t i = data; i < line.size() - 4; ++i) {
    std::string damaged = line;
    damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(parse_media(damaged)) << i;
  }
}

TEST(Media, damaged_lines_are_refused) {
  const std::string png_text = base64(png(3));
  for (const std::string& line : {
           std::string(R"({"step":1,"name":"w"})"),
           std::string(R"({"step":-1,"name":"w","histogram":{"lowest":0,"highest":1,"counts":[1]}})"),
           std::string(R"({"step":1,"name":"","histogram":{"lowest":0,"highest":1,"counts":[1]}})"),
           std::string(R"({"step":1,"name":"w","histogram":{"lowest":2,"highest":1,"counts":[1]}})"),
           std::string(R"({"step":1,"name":"w","histogram":{"lowest":0,"highest":1,"counts":[]}})"),
           std::string(R"({"step":1,"name":"w","histogram":{"lowest":0,"highest":1,"counts":[-1]}})"),
           std::string(R"({"step":1,"name":"w","histogram":{"lowest":0,"highest":1e999,"counts":[1]}})"),
           std::string(R"({"step":1,"name":"w","image":{"base64":"AAAA"}})"),
           R"({"step":1,"name":"w","image":{"crc32c":"00000000","base64":")" + png_text + R"("}})",
       })
    EXPECT_FALSE(parse_media(line)) << line;
  EXPECT_TRUE(parse_media(R"({"step":1,"name":"w","image":{"base64":")" + png_text + R"("}})"));
}

TEST(Media, a_file_with_damage_gives_its_other_records) {
  const TempDirectory box;
  const Path file = box / media_file_name(3, "");
  const std::string line = media_line(picture());
  ASSERT_TRUE(write_file(file, line + line.substr(0, 60) + "\n" + std::string(kLongestMediaLine + 9, 'x') +
                                   "\n" + line + line.substr(0, 40))
                  .ok());
  std::vector<std::string> names;
  EXPECT_EQ(visit_media(file, [&](MediaRecord&& record) { names.push_back(record.name); }), 2u);
  EXPECT_THAT(names, ElementsAre("samples", "samples"));
  EXPECT_EQ(visit_media(box / "absent", [](MediaRecord&&) {}), 0u);
}

TEST(Media, files_of_an_attempt_are_listed_by_rank) {
  const TempDirectory box;
  for (const char* name :
       {"media-0010.jsonl", "media-0002-2.jsonl", "media-0002.jsonl", "media-x.jsonl", "media.jsonl"})
    ASSERT_TRUE(write_file(box / name, "").ok());
  const std::vector<MediaFile> files = list_media_files(Attempt(box.path(), 1));
  ASSERT_THAT(files, SizeIs(3));
  EXPECT_EQ(files[0].path.filename(), "media-0002.jsonl");
  EXPECT_EQ(files[1].writer, "2");
  EXPECT_EQ(files[2].rank, 10);
}

}  // namespace
}  // namespace stoker::record
