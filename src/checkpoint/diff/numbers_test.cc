#include "checkpoint/diff/numbers.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::checkpoint {
namespace {

template <typename Stored>
std::vector<double> converted(DType dtype, std::vector<Stored> values) {
  std::vector<double> out(values.size());
  to_doubles(dtype, std::as_bytes(std::span(values)), out);
  return out;
}

TEST(Numbers, every_type_keeps_its_value) {
  using Numbers = std::vector<double>;
  EXPECT_EQ(converted<std::uint8_t>(DType::boolean, {0, 1}), (Numbers{0, 1}));
  EXPECT_EQ(converted<std::uint8_t>(DType::u8, {0, 255}), (Numbers{0, 255}));
  EXPECT_EQ(converted<std::int8_t>(DType::i8, {-128, 127}), (Numbers{-128, 127}));
  EXPECT_EQ(converted<std::int16_t>(DType::i16, {-32768, 5}), (Numbers{-32768, 5}));
  EXPECT_EQ(converted<std::uint16_t>(DType::u16, {65535}), (Numbers{65535}));
  EXPECT_EQ(converted<std::int32_t>(DType::i32, {-2147483647}), (Numbers{-2147483647}));
  EXPECT_EQ(converted<std::uint32_t>(DType::u32, {4294967295u}), (Numbers{4294967295}));
  EXPECT_EQ(converted<float>(DType::f32, {-1.5f, 0.1f}), (Numbers{-1.5, static_cast<double>(0.1f)}));
  EXPECT_EQ(converted<double>(DType::f64, {1e300}), (Numbers{1e300}));
  EXPECT_EQ(converted<std::int64_t>(DType::i64, {-(1ll << 53)}), (Numbers{-9007199254740992}));
  EXPECT_EQ(converted<std::uint64_t>(DType::u64, {1ull << 63}), (Numbers{9223372036854775808.0}));
}

// Bit patterns and values of IEEE 754 binary16:
// https://en.wikipedia.org/wiki/Half-precision_floating-point_format
TEST(Numbers, half_precision) {
  const auto numbers = converted<std::uint16_t>(DType::f16, {0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x3555,
                                                             0x3c00, 0x7bff, 0xc000, 0x7c00, 0xfc00, 0x7e00});
  EXPECT_EQ(numbers[0], 0);
  EXPECT_TRUE(std::signbit(numbers[1]));
  EXPECT_EQ(numbers[2], std::ldexp(1, -24));
  EXPECT_EQ(numbers[3], std::ldexp(1023, -24));
  EXPECT_EQ(numbers[4], std::ldexp(1, -14));
  EXPECT_EQ(numbers[5], 0.333251953125);
  EXPECT_EQ(numbers[6], 1);
  EXPECT_EQ(numbers[7], 65504);
  EXPECT_EQ(numbers[8], -2);
  EXPECT_EQ(numbers[9], std::numeric_limits<double>::infinity());
  EXPECT_EQ(numbers[10], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(numbers[11]));
}

TEST(Numbers, bf16_is_the_upper_half_of_a_float) {
  const auto numbers = converted<std::uint16_t>(DType::bf16, {0x3f80, 0xc000, 0x7f80, 0x7fc0});
  EXPECT_EQ(numbers[0], 1);
  EXPECT_EQ(numbers[1], -2);
  EXPECT_TRUE(std::isinf(numbers[2]));
  EXPECT_TRUE(std::isnan(numbers[3]));
}

}  // namespace
}  // namespace stoker::checkpoint
