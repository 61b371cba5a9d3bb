#include "parquet/columns/number.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace stoker::parquet {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::string_view stored(const Number& number, DType type) {
  std::byte bytes[8];
  return store_number(number, type, bytes);
}

Number round_trip(const Number& number, DType type) {
  std::byte bytes[8];
  EXPECT_EQ(store_number(number, type, bytes), "");
  return load_number(type, bytes);
}

TEST(Number, is_compared_by_value_whatever_its_type) {
  EXPECT_TRUE(Number(std::int64_t{3}) == Number(3.0));
  EXPECT_TRUE(Number(std::int64_t{-1}) < Number(std::uint64_t{1} << 63));
  EXPECT_TRUE(Number(std::int64_t{3}) < Number(3.5));
  EXPECT_TRUE(Number(-3.5) < Number(std::int64_t{-3}));
  EXPECT_TRUE(Number(kMax) < Number(9223372036854775808.0)) << "no rounding to the next double";
  EXPECT_TRUE(Number(std::uint64_t{1} << 63) == Number(9223372036854775808.0));
  EXPECT_TRUE(Number(std::numeric_limits<double>::infinity()) >
              Number(std::numeric_limits<std::uint64_t>::max()));
  const Number nan(std::nan(""));
  EXPECT_FALSE(nan < Number(std::int64_t{0}) || nan > Number(std::int64_t{0}) || nan == nan);
}

TEST(Number, whole_numbers_are_kept_or_refused) {
  EXPECT_EQ(stored(Number(std::int64_t{300}), DType::u8), "does not fit");
  EXPECT_EQ(stored(Number(std::int64_t{-1}), DType::u64), "does not fit");
  EXPECT_EQ(stored(Number(std::int64_t{16'777'216}), DType::f32), "");
  EXPECT_EQ(stored(Number(std::int64_t{16'777'217}), DType::f32), "would be rounded");
  EXPECT_EQ(stored(Number(std::int64_t{2049}), DType::f16), "would be rounded");
  EXPECT_EQ(stored(Number(kMax), DType::f64), "would be rounded");
  EXPECT_EQ(stored(Number(std::int64_t{2}), DType::boolean), "is neither 0 nor 1");
  EXPECT_EQ(round_trip(Number(std::numeric_limits<std::uint64_t>::max()), DType::u64),
            Number(std::numeric_limits<std::uint64_t>::max()));
}

TEST(Number, fractions_are_rounded_into_floating_types_and_refused_elsewhere) {
  EXPECT_EQ(round_trip(Number(0.1), DType::f32), Number(double{0.1F}));
  EXPECT_EQ(round_trip(Number(0.1), DType::f16), Number(0.0999755859375));
  EXPECT_EQ(round_trip(Number(6e-8), DType::f16), Number(std::ldexp(1.0, -24)));
  EXPECT_EQ(round_trip(Number(65519.0), DType::f16), Number(65504.0));
  EXPECT_EQ(round_trip(Number(0.0), DType::f16), Number(0.0));
  EXPECT_EQ(stored(Number(65520.0), DType::f16), "does not fit");
  EXPECT_EQ(stored(Number(1e300), DType::f32), "does not fit");
  EXPECT_EQ(stored(Number(std::numeric_limits<double>::infinity()), DType::f32), "");
  EXPECT_EQ(stored(Number(1.5), DType::i32), "has a fraction");
  EXPECT_EQ(stored(Number(std::nan("")), DType::i32), "is NaN");
  EXPECT_EQ(stored(Number(std::numeric_limits<double>::infinity()), DType::i64), "does not fit");
  EXPECT_EQ(round_trip(Number(-7.0), DType::i8), Number(std::int64_t{-7}));
  EXPECT_TRUE(round_trip(Number(std::nan("")), DType::f16).is_nan());
}

TEST(Number, float16_survives_a_round_trip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    std::byte bytes[2];
    std::memcpy(bytes, &half, sizeof half);
    const Number number = load_number(DType::f16, bytes);
    if (number.is_nan()) continue;
    std::byte again[2];
    EXPECT_EQ(store_number(number, DType::f16, again), "") << bits;
    EXPECT_EQ(std::memcmp(bytes, again, 2), 0) << bits;
  }
}

TEST(Number, common_type_matches_numpy_result_type) {
  EXPECT_EQ(common_type(DType::f32, DType::i16), DType::f32);
  EXPECT_EQ(common_type(DType::f32, DType::i32), DType::f64);
  EXPECT_EQ(common_type(DType::f16, DType::u8), DType::f16);
  EXPECT_EQ(common_type(DType::boolean, DType::u8), DType::u8);
  EXPECT_EQ(common_type(DType::u8, DType::i8), DType::i16);
  EXPECT_EQ(common_type(DType::i64, DType::u32), DType::i64);
  EXPECT_EQ(common_type(DType::u64, DType::i8), DType::f64);
}

}  // namespace
}  // namespace stoker::parquet
