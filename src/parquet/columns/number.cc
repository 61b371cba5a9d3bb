#include "parquet/columns/number.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "stoker/text.h"

namespace stoker::parquet {

namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;

// A whole number with a fraction. T's range is [least, beyond).
template <typename T>
std::partial_ordering compare_with_real(T whole, double real, double least, double beyond) {
  if (std::isnan(real)) return std::partial_ordering::unordered;
  if (real >= beyond) return std::partial_ordering::less;
  if (real < least) return std::partial_ordering::greater;
  const double floor = std::floor(real);
  const T nearest = static_cast<T>(floor);
  if (whole != nearest) return whole <=> nearest;
  return real > floor ? std::partial_ordering::less : std::partial_ordering::equivalent;
}

std::partial_ordering order(std::int64_t a, double b) { return compare_with_real(a, b, -kTwoTo63, kTwoTo63); }
std::partial_ordering order(std::uint64_t a, double b) { return compare_with_real(a, b, 0, 2 * kTwoTo63); }
std::partial_ordering order(double a, double b) { return a <=> b; }
template <typename T>
  requires std::is_integral_v<T>
std::partial_ordering order(double a, T b) {
  return 0 <=> order(b, a);
}
template <typename T, typename U>
  requires(std::is_integral_v<T> && std::is_integral_v<U>)
std::partial_ordering order(T a, U b) {
  if (std::cmp_less(a, b)) return std::partial_ordering::less;
  return std::cmp_equal(a, b) ? std::partial_ordering::equivalent : std::partial_ordering::greater;
}

double half_to_real(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  if (exponent == 31) size = fraction == 0 ? HUGE_VAL : std::nan("");
  return (bits & 0x8000) != 0 ? -size : size;
}

// To the nearest, halves to the even one.
std::uint16_t half_of(double value) {
  constexpr double kBeyond = 65520;
  constexpr int kLeastPower = -14;
  const auto sign = static_cast<unsigned>(std::signbit(value) ? 0x8000 : 0);
  const double size = std::fabs(value);
  if (std::isnan(value)) return 0x7E00;
  if (size == 0) return static_cast<std::uint16_t>(sign);
  if (size >= kBeyond) return static_cast<std::uint16_t>(sign | 0x7C00);
  int exponent = 0;
  std::frexp(size, &exponent);
  const int power = std::max(exponent - 1, kLeastPower);
  const auto fraction = static_cast<unsigned>(std::nearbyint(std::ldexp(size, 10 - power)));
  return static_cast<std::uint16_t>(sign | ((static_cast<unsigned>(power - kLeastPower) << 10) + fraction));
}

template <typename T>
void put_bytes(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}

template <typename T, typename From>
std::string_view put_whole(From value, std::byte* to) {
  if constexpr (std::is_floating_point_v<From>) {
    if (std::isnan(value)) return "is NaN";
    if (value != std::floor(value)) return "has a fraction";
    const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (value < static_cast<double>(std::numeric_limits<T>::min()) || value >= beyond) return "does not fit";
  } else if (!std::in_range<T>(value)) {
    return "does not fit";
  }
  put_bytes(static_cast<T>(value), to);
  return {};
}

template <typename From>
std::string_view put_truth(From value, std::byte* to) {
  if (value != From{0} && value != From{1}) return "is neither 0 nor 1";
  *to = std::byte{value != From{0}};
  return {};
}

// Checks the result: an integer must be unchanged, and a finite number must stay finite.
template <typename From>
std::string_view conversion_error(From value, double became) {
  if constexpr (std::is_floating_point_v<From>) {
    return std::isinf(became) && !std::isinf(value) ? "does not fit" : "";
  } else {
    return std::is_eq(order(value, became)) ? "" : "would be rounded";
  }
}

template <typename From>
std::string_view put_real(From value, DType type, std::byte* to) {
  const auto wide = static_cast<double>(value);
  if (type == DType::f64) {
    put_bytes(wide, to);
    return conversion_error(value, wide);
  }
  if (type == DType::f32) {
    // Straight from the whole number: not rounded twice.
    const bool fits = !std::isfinite(wide) || std::fabs(wide) <= std::numeric_limits<float>::max();
    const float narrow = fits ? static_cast<float>(value) : std::numeric_limits<float>::infinity();
    put_bytes(narrow, to);
    return conversion_error(value, static_cast<double>(narrow));
  }
  const std::uint16_t half = half_of(wide);
  put_bytes(half, to);
  return conversion_error(value, half_to_real(half));
}

struct TypeName {
  DType type;
  std::string_view name;
};
constexpr TypeName kNames[] = {{DType::boolean, "bool"}, {DType::u8, "uint8"},   {DType::i8, "int8"},
                               {DType::i16, "int16"},    {DType::u16, "uint16"}, {DType::f16, "float16"},
                               {DType::i32, "int32"},    {DType::u32, "uint32"}, {DType::f32, "float32"},
                               {DType::f64, "float64"},  {DType::i64, "int64"},  {DType::u64, "uint64"},
                               {DType::bf16, "bfloat16"}};

bool is_unsigned(DType type) {
  return type == DType::u8 || type == DType::u16 || type == DType::u32 || type == DType::u64;
}

DType signed_of(std::size_t bytes) {
  return bytes == 1 ? DType::i8 : bytes == 2 ? DType::i16 : bytes == 4 ? DType::i32 : DType::i64;
}

DType floating_of(std::size_t bytes) {
  return bytes <= 2 ? DType::f16 : bytes == 4 ? DType::f32 : DType::f64;
}

}  // namespace

Number::Number(std::uint64_t value) {
  if (std::in_range<std::int64_t>(value)) {
    value_ = static_cast<std::int64_t>(value);
  } else {
    value_ = value;
  }
}

bool Number::is_nan() const { return is_real() && std::isnan(std::get<double>(value_)); }

double Number::real() const {
  return std::visit([](auto value) { return static_cast<double>(value); }, value_);
}

std::optional<std::int64_t> Number::whole() const {
  std::int64_t whole = 0;
  std::byte bytes[sizeof whole];
  if (!put(DType::i64, bytes).empty()) return std::nullopt;
  std::memcpy(&whole, bytes, sizeof whole);
  return whole;
}

std::partial_ordering operator<=>(const Number& a, const Number& b) {
  return std::visit([](auto one, auto two) { return order(one, two); }, a.value_, b.value_);
}

std::string to_text(const Number& number) {
  return std::visit([](auto value) { return format("{}", value); }, number.value_);
}

std::string_view Number::put(DType type, std::byte* to) const {
  return std::visit(
      [&](auto value) -> std::string_view {
        switch (type) {
          case DType::boolean:
            return put_truth(value, to);
          case DType::u8:
            return put_whole<std::uint8_t>(value, to);
          case DType::i8:
            return put_whole<std::int8_t>(value, to);
          case DType::u16:
            return put_whole<std::uint16_t>(value, to);
          case DType::i16:
            return put_whole<std::int16_t>(value, to);
          case DType::u32:
            return put_whole<std::uint32_t>(value, to);
          case DType::i32:
            return put_whole<std::int32_t>(value, to);
          case DType::u64:
            return put_whole<std::uint64_t>(value, to);
          case DType::i64:
            return put_whole<std::int64_t>(value, to);
          case DType::f16:
          case DType::f32:
          case DType::f64:
            return put_real(value, type, to);
          case DType::bf16:  // unsupported by NumPy
            break;
        }
        return "has no such type";
      },
      value_);
}

std::string_view store_number(const Number& number, DType type, std::byte* to) {
  return number.put(type, to);
}

std::optional<Number> number_from_text(std::string_view text) {
  std::int64_t whole = 0;
  if (parse_number(text, &whole)) return Number(whole);
  std::uint64_t natural = 0;
  if (parse_number(text, &natural)) return Number(natural);
  double real = 0;
  if (parse_number(text, &real)) return Number(real);
  return std::nullopt;
}

namespace {

template <typename T>
T bytes_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

Number load_number(DType type, const std::byte* from) {
  switch (type) {
    case DType::boolean:
    case DType::u8:
      return std::int64_t{bytes_as<std::uint8_t>(from)};
    case DType::i8:
      return std::int64_t{bytes_as<std::int8_t>(from)};
    case DType::i16:
      return std::int64_t{bytes_as<std::int16_t>(from)};
    case DType::u16:
      return std::int64_t{bytes_as<std::uint16_t>(from)};
    case DType::i32:
      return std::int64_t{bytes_as<std::int32_t>(from)};
    case DType::u32:
      return std::int64_t{bytes_as<std::uint32_t>(from)};
    case DType::i64:
      return bytes_as<std::int64_t>(from);
    case DType::u64:
      return bytes_as<std::uint64_t>(from);
    case DType::f16:
      return half_to_real(bytes_as<std::uint16_t>(from));
    case DType::bf16:
      return double{std::bit_cast<float>(std::uint32_t{bytes_as<std::uint16_t>(from)} << 16)};
    case DType::f32:
      return double{bytes_as<float>(from)};
    case DType::f64:
      break;
  }
  return bytes_as<double>(from);
}

std::string_view numpy_name(DType type) {
  const auto* const found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const TypeName& n) { return n.type == type; });
  return found->name;
}

bool is_floating(DType type) {
  return type == DType::f16 || type == DType::bf16 || type == DType::f32 || type == DType::f64;
}

DType common_type(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  const std::size_t larger = std::max(size_of(a), size_of(b));
  if (is_floating(a) && is_floating(b)) return floating_of(larger);
  if (is_floating(a) || is_floating(b)) {
    const DType real = is_floating(a) ? a : b;
    const DType whole = is_floating(a) ? b : a;
    const DType able = floating_of(std::min<std::size_t>(8, 2 * size_of(whole)));
    return size_of(able) > size_of(real) ? able : real;
  }
  if (is_unsigned(a) == is_unsigned(b)) return size_of(a) > size_of(b) ? a : b;
  const std::size_t natural = size_of(is_unsigned(a) ? a : b);
  const std::size_t integer = size_of(is_unsigned(a) ? b : a);
  if (integer > natural) return signed_of(integer);
  return natural < 8 ? signed_of(2 * natural) : DType::f64;
}

}  // namespace stoker::parquet
