#include "checkpoint/diff/numbers.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace stoker::checkpoint {

namespace {

double from_half(std::uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent < 31) return sign * std::ldexp(0x400 + fraction, exponent - 25);
  return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                       : std::numeric_limits<double>::quiet_NaN();
}

template <typename Stored, typename Convert>
void convert_all(std::span<const std::byte> bytes, std::span<double> out, Convert convert) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    out[i] = convert(value);
  }
}

template <typename Stored>
void cast_all(std::span<const std::byte> bytes, std::span<double> out) {
  convert_all<Stored>(bytes, out, [](Stored value) { return static_cast<double>(value); });
}

}  // namespace

void to_doubles(DType dtype, std::span<const std::byte> bytes, std::span<double> out) {
  switch (dtype) {
    case DType::boolean:
    case DType::u8:
      return cast_all<std::uint8_t>(bytes, out);
    case DType::i8:
      return cast_all<std::int8_t>(bytes, out);
    case DType::i16:
      return cast_all<std::int16_t>(bytes, out);
    case DType::u16:
      return cast_all<std::uint16_t>(bytes, out);
    case DType::f16:
      return convert_all<std::uint16_t>(bytes, out, from_half);
    case DType::bf16:
      return convert_all<std::uint16_t>(bytes, out, [](std::uint16_t bits) {
        return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
      });
    case DType::i32:
      return cast_all<std::int32_t>(bytes, out);
    case DType::u32:
      return cast_all<std::uint32_t>(bytes, out);
    case DType::f32:
      return cast_all<float>(bytes, out);
    case DType::f64:
      return cast_all<double>(bytes, out);
    case DType::i64:
      return cast_all<std::int64_t>(bytes, out);
    case DType::u64:
      return cast_all<std::uint64_t>(bytes, out);
  }
}

}  // namespace stoker::checkpoint
