#include "net/shm/element.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::net::shm {
namespace {

using testing::ElementsAre;

template <typename T>
std::vector<T> folded(ReduceSpec arithmetic, std::vector<std::vector<T>> ranks) {
  std::vector<const std::byte*> from;
  for (const auto& values : ranks) from.push_back(reinterpret_cast<const std::byte*>(values.data()));
  std::vector<T> into(ranks[0].size());
  fold(arithmetic, reinterpret_cast<std::byte*>(into.data()), from, into.size() * sizeof(T));
  return into;
}

TEST(Fold, sums_in_the_order_of_ranks) {
  // (1e8 + 1) - 1e8 is 0 in float32, 1e8 - 1e8 + 1 would be 1.
  EXPECT_THAT(folded<float>({Element::f32, Reduction::sum}, {{1e8F}, {1.0F}, {-1e8F}}), ElementsAre(0.0F));
  EXPECT_THAT(folded<float>({Element::f32, Reduction::sum}, {{1e8F}, {-1e8F}, {1.0F}}), ElementsAre(1.0F));
}

TEST(Fold, supports_every_reduction) {
  const std::vector<std::vector<double>> ranks{{1, -2}, {3, 5}, {2, 0}};
  EXPECT_THAT(folded<double>({Element::f64, Reduction::sum}, ranks), ElementsAre(6, 3));
  EXPECT_THAT(folded<double>({Element::f64, Reduction::average}, ranks), ElementsAre(2, 1));
  EXPECT_THAT(folded<double>({Element::f64, Reduction::product}, ranks), ElementsAre(6, 0));
  EXPECT_THAT(folded<double>({Element::f64, Reduction::min}, ranks), ElementsAre(1, -2));
  EXPECT_THAT(folded<double>({Element::f64, Reduction::max}, ranks), ElementsAre(3, 5));
}

TEST(Fold, sums_several_blocks_completely) {
  std::vector<float> values(5000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto sums = folded<float>({Element::f32, Reduction::sum}, {values, values, values});
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(sums[i], 3 * values[i]);
}

TEST(Fold, may_overwrite_one_of_its_inputs) {
  std::vector<float> first(3000, 1), second(3000, 2);
  const std::byte* from[] = {reinterpret_cast<const std::byte*>(first.data()),
                             reinterpret_cast<const std::byte*>(second.data())};
  fold({Element::f32, Reduction::sum}, reinterpret_cast<std::byte*>(second.data()), from, 12000);
  EXPECT_EQ(second, std::vector<float>(3000, 3));
  fold({Element::f32, Reduction::max}, reinterpret_cast<std::byte*>(first.data()), from, 12000);
  EXPECT_EQ(first, std::vector<float>(3000, 3));
}

TEST(Fold, integers_wrap_and_averages_are_truncated) {
  EXPECT_THAT(folded<std::int8_t>({Element::i8, Reduction::sum}, {{127}, {1}}), ElementsAre(-128));
  EXPECT_THAT(folded<std::uint8_t>({Element::u8, Reduction::sum}, {{255}, {2}}), ElementsAre(1));
  EXPECT_THAT(folded<std::int16_t>({Element::i16, Reduction::product}, {{300}, {-2}}), ElementsAre(-600));
  EXPECT_THAT(folded<std::int32_t>({Element::i32, Reduction::average}, {{-3}, {-4}}), ElementsAre(-3));
  const std::int64_t big = std::int64_t{1} << 62;
  EXPECT_THAT(folded<std::int64_t>({Element::i64, Reduction::sum}, {{big}, {-1}}), ElementsAre(big - 1));
}

TEST(Fold, a_nan_of_any_rank_stays) {
  const float nan = std::nanf("");
  for (const Reduction reduction : {Reduction::min, Reduction::max, Reduction::sum}) {
    EXPECT_TRUE(std::isnan(folded<float>({Element::f32, reduction}, {{nan}, {1}})[0]));
    EXPECT_TRUE(std::isnan(folded<float>({Element::f32, reduction}, {{1}, {nan}})[0]));
  }
}

// A sum with zero must preserve every value.
TEST(Fold, converts_every_float16_exactly) {
  std::vector<std::uint16_t> all, zeros(65536, 0);
  for (std::uint32_t bits = 0; bits < 65536; ++bits) all.push_back(static_cast<std::uint16_t>(bits));
  const auto sums = folded<std::uint16_t>({Element::f16, Reduction::sum}, {all, zeros});
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const bool is_nan = (bits & 0x7fff) > 0x7c00;
    if (is_nan) {
      EXPECT_GT(sums[bits] & 0x7fff, 0x7c00) << bits;
    } else {
      EXPECT_EQ(sums[bits], bits == 0x8000 ? 0 : bits);  // -0 + 0 is 0
    }
  }
}

TEST(Fold, rounds_float16_to_nearest_even) {
  const auto sum = [](std::uint16_t a, std::uint16_t b) {
    return folded<std::uint16_t>({Element::f16, Reduction::sum}, {{a}, {b}})[0];
  };
  EXPECT_EQ(sum(0x6800, 0x3c00), 0x6800);  // 2048 + 1 is between 2048 and 2050: ties to even
  EXPECT_EQ(sum(0x6801, 0x3c00), 0x6802);  // 2050 + 1: up to 2052
  EXPECT_EQ(sum(0x7bff, 0x4c00), 0x7c00);  // 65504 + 16 overflows
  EXPECT_EQ(sum(0x7bff, 0x4b80), 0x7bff);  // 65504 + 15 does not
  EXPECT_EQ(sum(0x0001, 0x0001), 0x0002);  // subnormal
  EXPECT_EQ(sum(0x03ff, 0x0001), 0x0400);  // to the smallest normal number
}

TEST(Fold, sums_16_bit_values_in_higher_precision_and_rounds_once) {
  // 256 + 1 + 1 in bfloat16 (8 bits): each sum rounded is 256, the whole sum is 258.
  EXPECT_THAT(folded<std::uint16_t>({Element::bf16, Reduction::sum}, {{0x4380}, {0x3f80}, {0x3f80}}),
              ElementsAre(0x4381));
  EXPECT_THAT(folded<std::uint16_t>({Element::bf16, Reduction::sum}, {{0x7f81}, {0x3f80}}),
              ElementsAre(0x7fc0));
}

TEST(Element, has_the_torch_name_and_size) {
  EXPECT_EQ(to_text(Element::bf16), "bfloat16");
  EXPECT_EQ(to_text(Element::i64), "int64");
  EXPECT_EQ(size_of(Element::f16), 2U);
  EXPECT_EQ(size_of(Element::f64), 8U);
}

}  // namespace
}  // namespace stoker::net::shm
