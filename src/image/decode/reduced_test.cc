// JPEGs decoded at a smaller size.
#include <cstdio>  // jpeglib.h uses FILE without including it
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>
#include <jpeglib.h>

#include "base/golden_test.h"
#include "image/decode/decode.h"
#include "image/transform/transform.h"

namespace stoker::image {
namespace {

// A smooth picture.
std::string photograph(std::uint32_t width, std::uint32_t height, int restart_rows = 0) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = width;
  jpeg.image_height = height;
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 95, TRUE);
  jpeg.restart_in_rows = restart_rows;
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<unsigned char> row(std::size_t{3} * width);
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      row[3 * x] = static_cast<unsigned char>(255 * x / width);
      row[3 * x + 1] = static_cast<unsigned char>(255 * y / height);
      row[3 * x + 2] = static_cast<unsigned char>(128 + 60 * ((x / 60 + y / 60) % 2));
    }
    unsigned char* rows[] = {row.data()};
    jpeg_write_scanlines(&jpeg, rows, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&jpeg);
  std::free(bytes);
  return file;
}

TEST(ReducedDecoding, parts_equal_the_whole_reduced_image) {
  std::vector<std::pair<std::string, std::string>> files;
  const nlohmann::json reference = golden("images.json");
  for (const auto& row : reference["images"]) {
    if (row["name"].get<std::string>().ends_with(".jpg"))
      files.emplace_back(row["name"], from_base64(row["bytes"]));
  }
  files.emplace_back("photograph", photograph(301, 203));
  files.emplace_back("restarts in rows", photograph(301, 203, 1));
  std::mt19937 chance(1);
  Decoder decoder;
  for (const auto& [name, file] : files) {
    for (const std::uint32_t reduction : {1u, 2u, 4u, 8u}) {
      const ImageInfo info = decoder.open(bytes_of(file)).value();
      ASSERT_TRUE(decoder.can_reduce());
      const std::uint32_t width = (info.width + reduction - 1) / reduction;
      const std::uint32_t height = (info.height + reduction - 1) / reduction;
      Image whole, held;
      ImageRegion got;
      ASSERT_TRUE(decoder.decode({0, 0, width, height}, whole, got, reduction).ok());
      ASSERT_EQ(got, (ImageRegion{0, 0, width, height})) << name;
      for (int i = 0; i < 60; ++i) {
        ImageRegion part{0, 0, 1 + static_cast<std::uint32_t>(chance() % width),
                         1 + static_cast<std::uint32_t>(chance() % height)};
        part.x = static_cast<std::uint32_t>(chance() % (width - part.width + 1));
        part.y = static_cast<std::uint32_t>(chance() % (height - part.height + 1));
        ASSERT_TRUE(decoder.open(bytes_of(file)).ok());
        ASSERT_TRUE(decoder.decode(part, held, got, reduction).ok());
        for (std::uint32_t y = 0; y < part.height; ++y) {
          const auto* a = whole.pixels.data() + 3 * (std::size_t{part.y + y} * width + part.x);
          const auto* b =
              held.pixels.data() + 3 * (std::size_t{part.y + y - got.y} * got.width + part.x - got.x);
          ASSERT_TRUE(std::equal(a, a + std::size_t{3} * part.width, b))
              << name << " 1/" << reduction << " " << part.x << " " << part.y << " " << part.width << " "
              << part.height;
        }
      }
    }
  }
}

std::vector<float> applied(const std::string& file, const TransformOperation& operation) {
  Transform transform = Transform::create({{operation}}).value();
  std::vector<float> out(transform.elements());
  TransformScratch scratch;
  const Status status =
      transform.apply_to_file(bytes_of(file), {1, 2, 3}, scratch, std::as_writable_bytes(std::span(out)));
  EXPECT_TRUE(status.ok()) << status.to_string();
  return out;
}

TEST(ReducedDecoding, a_gap_hardly_changes_the_result) {
  const std::string file = photograph(1600, 1200);
  for (const char* name : {"resize", "random_resized_crop"}) {
    for (const double side : {40.0, 70.0, 130.0}) {
      TransformOperation operation{name, {{"size", std::vector<double>{side, side}}}};
      if (operation.name == "random_resized_crop")
        operation.parameters["scale"] = std::vector<double>{0.5, 0.9};
      const std::vector<float> exact = applied(file, operation);
      for (const double gap : {1.0, 2.0, 3.0}) {
        operation.parameters["reducing_gap"] = gap;
        const std::vector<float> reduced = applied(file, operation);
        double sum = 0, most = 0;
        for (std::size_t i = 0; i < exact.size(); ++i) {
          const double difference = 255 * std::abs(exact[i] - reduced[i]);
          sum += difference;
          most = std::max(most, difference);
        }
        // Never shifted: a shift would appear as a difference of at least one level everywhere.
        EXPECT_LT(sum / static_cast<double>(exact.size()), 0.9) << name << " " << side << " " << gap;
        EXPECT_LT(most, gap >= 2 ? 20 : 60) << name << " " << side << " " << gap;
      }
    }
  }
}

TEST(ReducedDecoding, requires_a_large_enough_picture) {
  const std::string file = photograph(301, 203);
  TransformOperation operation{"random_resized_crop", {{"size", 224.0}}};
  const std::vector<float> exact = applied(file, operation);
  operation.parameters["reducing_gap"] = 1.0;
  EXPECT_EQ(applied(file, operation), exact);
  operation.parameters["reducing_gap"] = 0.5;
  EXPECT_EQ(Transform::create({{operation}}).status().to_string(),
            "transform: random_resized_crop: reducing_gap 0.5 is not between 1 and 16");
}

}  // namespace
}  // namespace stoker::image
