#include "parquet/columns/elements.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "parquet/columns/number.h"

namespace stoker::parquet {

namespace {

template <typename From, typename To>
bool put_all(const ParquetValues& values, std::byte* out) {
  bool fits = true;
  for (std::uint64_t i = 0; i < values.slots; ++i) {
    From from;
    std::memcpy(&from, values.numbers.data() + i * sizeof from, sizeof from);
    if constexpr (sizeof(To) < sizeof(From)) {
      const bool is_finite = std::isfinite(from);
      const bool is_beyond = is_finite && std::fabs(from) > std::numeric_limits<To>::max();
      fits &= !is_beyond;
      if (is_beyond) from = 0;
    }
    const To to = static_cast<To>(from);
    std::memcpy(out + i * sizeof to, &to, sizeof to);
  }
  return fits;
}

// To a type that holds every number of the other, or its nearest.
template <typename To>
bool put_exactly(const ParquetValues& values, DType from, std::byte* out, bool& fits) {
  constexpr bool kIsReal = std::is_floating_point_v<To>;
  constexpr bool kIsWide = sizeof(To) == 8;
  switch (from) {
    case DType::boolean:
    case DType::u8:
      return fits = put_all<std::uint8_t, To>(values, out);
    case DType::u16:
      return fits = put_all<std::uint16_t, To>(values, out);
    case DType::i16:
      return fits = put_all<std::int16_t, To>(values, out);
    case DType::u32:
      if constexpr (kIsWide) return fits = put_all<std::uint32_t, To>(values, out);
      return false;
    case DType::i32:
      if constexpr (kIsWide) return fits = put_all<std::int32_t, To>(values, out);
      return false;
    case DType::f32:
      if constexpr (kIsWide && kIsReal) return fits = put_all<float, To>(values, out);
      return false;
    case DType::f64:
      if constexpr (kIsReal && !kIsWide) {
        fits = put_all<double, To>(values, out);
        return true;
      }
      return false;
    default:
      return false;
  }
}

// False for pairs of types that need a check of each number.
bool put_at_once(const ParquetValues& values, DType from, DType to, std::byte* out, bool& fits) {
  if (from == to) {
    std::memcpy(out, values.numbers.data(), values.numbers.size());
    return true;
  }
  if (to == DType::f32) return put_exactly<float>(values, from, out, fits);
  if (to == DType::f64) return put_exactly<double>(values, from, out, fits);
  return to == DType::i64 && put_exactly<std::int64_t>(values, from, out, fits);
}

}  // namespace

bool put_elements(const ParquetLeaf& leaf, const ParquetValues& values, DType element,
                  std::span<const std::byte> fill, std::byte* out) {
  if (values.slots == 0) return true;
  const DType from = number_type(leaf).value_or(DType::u8);
  const std::size_t width = size_of(element);
  bool fits = true;
  const bool is_done = put_at_once(values, from, element, out, fits);
  if (!fits) return false;
  for (std::uint64_t i = 0; i < values.slots; ++i) {
    if (!values.is_present(i)) {
      std::memcpy(out + i * width, fill.data(), width);
    } else if (!is_done) {
      const Number number = load_number(from, values.numbers.data() + i * size_of(from));
      if (!store_number(number, element, out + i * width).empty()) return false;
    }
  }
  return true;
}

}  // namespace stoker::parquet
