#include "image/transform/ops/colour.h"

#include <gtest/gtest.h>

#include "base/golden_test.h"
#include "image/transform/ops/warp.h"

namespace stoker::image {
namespace {

Image source(const nlohmann::json& reference, const std::string& name) {
  const bool is_picture = name == "picture";
  const std::string bytes = from_base64(reference[is_picture ? "resize_source" : "random_source"]);
  return {is_picture ? 37u : 64u, is_picture ? 23u : 64u, {bytes.begin(), bytes.end()}};
}

void call(const nlohmann::json& row, Image& image) {
  const std::string name = row["call"];
  const double value = row["value"].is_array() ? 0 : row["value"].get<double>();
  const auto factor = static_cast<float>(value);
  std::vector<std::uint8_t> work;
  Image warped;
  if (name == "brightness") adjust_brightness(image.pixels, factor);
  if (name == "contrast") adjust_contrast(image.pixels, factor);
  if (name == "saturation") adjust_saturation(image.pixels, factor);
  if (name == "sharpness") adjust_sharpness(image, factor, work);
  if (name == "hue") adjust_hue(image.pixels, value);
  if (name == "grey") to_grayscale(image.pixels);
  if (name == "posterize") posterize(image.pixels, static_cast<int>(value));
  if (name == "solarize") solarize(image.pixels, value);
  if (name == "autocontrast") autocontrast(image.pixels);
  if (name == "equalize") equalize(image.pixels);
  if (name == "rotate") warp(image, rotated(value, image.width, image.height), {9, 80, 170}, warped);
  if (name == "affine") warp(image, row["value"].get<Affine>(), {0, 0, 0}, warped);
  if (!warped.pixels.empty()) image = warped;
}

TEST(Colour, equals_pillow) {
  const nlohmann::json reference = golden("images.json");
  ASSERT_GE(reference["coloured"].size(), 100u);
  for (const auto& row : reference["coloured"]) {
    Image image = source(reference, row["source"]);
    call(row, image);
    EXPECT_EQ(hex(sha256(std::as_bytes(std::span(image.pixels)))), row["sha256"].get<std::string>())
        << row["source"] << " " << row["call"] << " " << row["value"];
  }
}

}  // namespace
}  // namespace stoker::image
