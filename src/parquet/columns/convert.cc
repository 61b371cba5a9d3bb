#include "parquet/columns/convert.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "codec/load.h"
#include "stoker/text.h"

namespace stoker::parquet {

namespace {

using Bytes = std::span<const std::byte>;

// Stores a number and returns the position of the next one.
template <typename T>
std::byte* put(T number, std::byte* out) {
  std::memcpy(out, &number, sizeof number);
  return out + sizeof number;
}

// The low bytes of each number of `Stored` bytes.
template <std::size_t Stored, std::size_t Width>
void narrow(Bytes from, std::byte* out) {
  for (std::size_t at = 0; at < from.size(); at += Stored, out += Width)
    std::memcpy(out, from.data() + at, Width);
}

// `digits` of an integer.
bool scaled(const std::string& digits, int scale, double& value) {
  return parse_number(format("{}e{}", digits, -scale), &value);
}

// The double that is nearest to number / 10^scale.
bool scaled(std::int64_t number, int scale, double& value) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  constexpr int kExactPower = 22;  // 10^22 is the largest exact power in a double
  if (number < -kExact || number > kExact || scale < 0 || scale > kExactPower)
    return scaled(std::to_string(number), scale, value);
  double power = 1;
  for (int i = 0; i < scale; ++i) power *= 10;
  value = static_cast<double>(number) / power;  // of two exact numbers: rounded once
  return true;
}

// A whole number of any length in digits; its highest byte is first, negative ones are two's complement.
std::string digits_of(std::string_view stored) {
  std::vector<unsigned> left(stored.size());
  std::ranges::transform(stored, left.begin(), [](char c) { return static_cast<unsigned char>(c); });
  const bool is_negative = !left.empty() && left.front() >= 128;
  if (is_negative) {
    unsigned carry = 1;
    for (auto byte = left.rbegin(); byte != left.rend(); ++byte) {
      const unsigned sum = (~*byte & 255u) + carry;
      *byte = sum & 255u;
      carry = sum >> 8;
    }
  }
  std::string digits;
  while (std::ranges::any_of(left, [](unsigned byte) { return byte != 0; })) {
    unsigned rest = 0;
    for (unsigned& byte : left) {
      const unsigned whole = rest << 8 | byte;
      byte = whole / 10;
      rest = whole % 10;
    }
    digits += static_cast<char>('0' + rest);
  }
  if (digits.empty()) digits = "0";
  if (is_negative) digits += '-';
  std::ranges::reverse(digits);
  return digits;
}

bool decimal(std::string_view stored, int scale, double& value) {
  if (stored.size() > kMaxDecimalBytes) return false;
  if (stored.size() > sizeof(std::int64_t)) return scaled(digits_of(stored), scale, value);
  const bool is_negative = !stored.empty() && static_cast<unsigned char>(stored.front()) >= 128;
  std::uint64_t number = is_negative ? ~std::uint64_t{0} : 0;
  for (const char c : stored) number = number << 8 | static_cast<unsigned char>(c);
  return scaled(static_cast<std::int64_t>(number), scale, value);
}

bool decimals(const SchemaLeaf& leaf, const StoredValues& values, std::byte* out) {
  const int scale = leaf.layout.scale;
  double value = 0;
  for (const std::string_view stored : values.texts) {
    if (!decimal(stored, scale, value)) return false;
    out = put(value, out);
  }
  const std::size_t width = leaf.layout.stored.number_bytes();
  for (std::size_t at = 0; at < values.numbers.size(); at += width) {
    const std::int64_t number = width == 4 ? codec::load<std::int32_t>(values.numbers, at)
                                           : codec::load<std::int64_t>(values.numbers, at);
    if (!scaled(number, scale, value)) return false;
    out = put(value, out);
  }
  return true;
}

// Nanoseconds of the day, and the Julian day number. Computed modulo 2^64: Spark lets days beyond an int32
// overflow, and the result is still correct.
void int96_to_microseconds(Bytes stored, std::byte* out) {
  constexpr std::int64_t kDayOf1970 = 2'440'588;
  constexpr std::uint64_t kDay = 86'400'000'000;
  constexpr std::size_t kWidth = 12;
  for (std::size_t at = 0; at < stored.size(); at += kWidth) {
    const auto nanoseconds = codec::load<std::int64_t>(stored, at);
    const std::int64_t day =
        std::int64_t{codec::load<std::int32_t>(stored, at + sizeof nanoseconds)} - kDayOf1970;
    const std::int64_t part = nanoseconds / 1000 - (nanoseconds % 1000 < 0 ? 1 : 0);
    out = put(static_cast<std::uint64_t>(day) * kDay + static_cast<std::uint64_t>(part), out);
  }
}

bool is_nan(std::span<const std::byte> number, ParquetLeaf::Type type) {
  if (type == ParquetLeaf::Type::float32) return std::isnan(codec::load<float>(number, 0));
  if (type == ParquetLeaf::Type::float64) return std::isnan(codec::load<double>(number, 0));
  if (type != ParquetLeaf::Type::float16) return false;
  constexpr unsigned kMagnitude = 0x7FFF, kInfinity = 0x7C00;
  return (codec::load<std::uint16_t>(number, 0) & kMagnitude) > kInfinity;
}

// Whether a 32-bit number fits the narrower type.
bool fits_width(std::span<const std::byte> stored, ParquetLeaf::Type type) {
  const auto number = codec::load<std::int32_t>(stored, 0);
  switch (type) {
    case ParquetLeaf::Type::int8:
      return number == static_cast<std::int8_t>(number);
    case ParquetLeaf::Type::uint8:
      return number == static_cast<std::uint8_t>(number);
    case ParquetLeaf::Type::int16:
      return number == static_cast<std::int16_t>(number);
    case ParquetLeaf::Type::uint16:
      return number == static_cast<std::uint16_t>(number);
    default:
      return true;
  }
}

}  // namespace

bool needs_no_conversion(const SchemaLeaf& leaf) {
  return !leaf.layout.is_decimal && leaf.layout.stored.number_bytes() == byte_width(leaf.column.type);
}

bool convert_numbers(const SchemaLeaf& leaf, const StoredValues& values, std::byte* out) {
  if (leaf.layout.is_decimal) return decimals(leaf, values, out);
  if (leaf.layout.stored.type == kParquetInt96) {
    int96_to_microseconds(values.numbers, out);
    return true;
  }
  for (const std::string_view stored : values.texts)
    out = std::ranges::copy(std::as_bytes(std::span(stored)), out).out;
  if (byte_width(leaf.column.type) == 1) narrow<4, 1>(values.numbers, out);
  if (byte_width(leaf.column.type) == 2) narrow<4, 2>(values.numbers, out);
  return true;
}

std::optional<std::string> convert_bound(const SchemaLeaf& leaf, const std::optional<std::string>& stored) {
  if (!stored || leaf.column.type == ParquetLeaf::Type::bytes) return stored;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(*stored));
  const StoredType& how = leaf.layout.stored;
  const std::string_view text(*stored);
  StoredValues value;
  if (how.is_bytes()) {
    if (how.width > 0 && stored->size() != how.width) return std::nullopt;
    value.texts = std::span(&text, 1);
  } else {
    if (bytes.size() != how.number_bytes()) return std::nullopt;
    if (how.type == kParquetInt32 && !fits_width(bytes, leaf.column.type)) return std::nullopt;
    if (how.type == kParquetBoolean && static_cast<unsigned>(bytes[0]) > 1) return std::nullopt;
    if (needs_no_conversion(leaf)) return is_nan(bytes, leaf.column.type) ? std::nullopt : stored;
    value.numbers = bytes;
  }
  std::vector<std::byte> number(byte_width(leaf.column.type));
  if (!convert_numbers(leaf, value, number.data()) || is_nan(number, leaf.column.type)) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(number.data()), number.size());
}

}  // namespace stoker::parquet
