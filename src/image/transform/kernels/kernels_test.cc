#include "image/transform/kernels/kernels.h"

#include <random>

#include <gtest/gtest.h>

#include "image/transform/resize.h"
#include "image/transform/sample_writer.h"

namespace stoker::image {
namespace {

Image noise(std::mt19937& chance, std::uint32_t width, std::uint32_t height) {
  Image image{width, height, std::vector<std::uint8_t>(std::size_t{3} * width * height)};
  for (std::uint8_t& byte : image.pixels) byte = static_cast<std::uint8_t>(chance());
  return image;
}

std::vector<std::uint8_t> resized(const Kernels& kernels, const Image& image, const ResizeTask& resizing) {
  Resizer resizer(kernels);
  resizer.start(resizing);
  resizer.set_source({image.view()});
  const ImageView all = resizer.all();
  return {all.pixels.begin(), all.pixels.end()};
}

ImageRegion part_of(std::mt19937& chance, std::uint32_t width, std::uint32_t height) {
  ImageRegion part;
  part.width = 1 + chance() % width;
  part.height = 1 + chance() % height;
  part.x = chance() % (width - part.width + 1);
  part.y = chance() % (height - part.height + 1);
  return part;
}

TEST(Kernels, all_resize_identically) {
  std::mt19937 chance(1);
  ASSERT_EQ(runnable_kernels().front(), &plain_kernels());
  for (int i = 0; i < 600; ++i) {
    const Image image = noise(chance, 1 + chance() % 90, 1 + chance() % 70);
    ResizeTask resizing;
    resizing.part = part_of(chance, image.width, image.height);
    resizing.width = 1 + chance() % 60;
    resizing.height = 1 + chance() % 60;
    resizing.window = part_of(chance, resizing.width, resizing.height);
    resizing.filter = static_cast<ResizeFilter>(chance() % 6);
    const auto expected = resized(plain_kernels(), image, resizing);
    for (const Kernels* kernels : runnable_kernels()) {
      ASSERT_EQ(resized(*kernels, image, resizing), expected)
          << kernels->name << ": " << image.width << " x " << image.height << " to " << resizing.width
          << " x " << resizing.height << ", filter " << static_cast<int>(resizing.filter);
    }
  }
}

TEST(Kernels, all_write_identically) {
  std::mt19937 chance(2);
  const Normalization formulas[] = {{{0, 0, 0}, {1, 1, 1}},
                                    {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}},
                                    {{0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}},
                                    {{0.5f, 0.5f, 0.5f}, {1e-5f, 3e4f, 0.1f}}};
  const Kernels* best = runnable_kernels().back();
  for (int i = 0; i < 400; ++i) {
    const std::uint32_t width = 1 + chance() % 80;
    const Image image = noise(chance, width, 1);
    SampleRow row{.pixels = image.pixels.data(), .fill = {9, 8, 7}, .is_flipped = chance() % 2 == 0};
    row.first = chance() % width;
    row.count = chance() % (width - row.first + 1);
    const Normalization& formula = formulas[chance() % 4];
    for (DType element : {DType::f32, DType::bf16, DType::f16, DType::u8}) {
      for (ImageLayout layout : {ImageLayout::nchw, ImageLayout::nhwc}) {
        std::vector<std::byte> expected(std::size_t{3} * width * 2 * size_of(element));
        std::vector<std::byte> found = expected;
        SampleWriter({width, 2, element, layout}, formula, plain_kernels()).write(1, row, expected);
        SampleWriter({width, 2, element, layout}, formula, *best).write(1, row, found);
        ASSERT_EQ(found, expected) << to_text(element) << " " << width << " " << row.first << " "
                                   << row.count;
      }
    }
  }
}

TEST(Kernels, fused_kernels_are_exact_for_common_normalisations) {
  const Kernels& best = best_kernels();
  if (best.name != "AVX2" && best.name != "AVX3") GTEST_SKIP() << "this processor has " << best.name;
  const Normalization imagenet{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  for (DType element : {DType::f32, DType::bf16, DType::f16}) {
    EXPECT_TRUE(SampleWriter({224, 224, element, ImageLayout::nchw}, imagenet).has_kernel());
  }
}

TEST(Kernels, skip_no_marker_of_a_jpeg) {
  std::mt19937 chance(3);
  const auto is_marker = [](const std::vector<std::uint8_t>& bytes, std::size_t i) {
    return bytes[i] == 0xFF && bytes[i + 1] != 0 && (bytes[i + 1] < 0xD0 || bytes[i + 1] > 0xD7);
  };
  for (int i = 0; i < 2000; ++i) {
    // Many 0xFF, few of them markers.
    std::vector<std::uint8_t> bytes(2 + chance() % 700);
    for (std::size_t k = 0; k < bytes.size(); ++k) {
      const bool follows = k > 0 && bytes[k - 1] == 0xFF;
      bytes[k] = static_cast<std::uint8_t>(chance() % 4 == 0 ? 0xFF : chance());
      if (follows && chance() % 200 != 0) bytes[k] = static_cast<std::uint8_t>(chance() % 2 ? 0 : 0xD3);
    }
    const std::size_t begin = chance() % (bytes.size() - 1);
    std::size_t first = begin;
    while (first + 1 < bytes.size() && !is_marker(bytes, first)) ++first;
    for (const Kernels* kernels : runnable_kernels()) {
      const std::size_t at = kernels->skip_scan(bytes.data(), begin, bytes.size());
      EXPECT_GE(at, begin) << kernels->name;
      EXPECT_LE(at, first) << kernels->name;
      if (kernels == &plain_kernels()) continue;
      EXPECT_GE(at + 64, std::min(first, bytes.size() - 1)) << kernels->name;
    }
  }
}

}  // namespace
}  // namespace stoker::image
