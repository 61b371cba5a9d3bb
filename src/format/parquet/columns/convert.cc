#include "format/parquet/columns/convert.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "base/text.h"
#include "format/load.h"

namespace stoker::formats {

namespace {

using Bytes = std::span<const std::byte>;

// Puts a number down and says where the next one comes.
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

// `digits` are those of a whole number.
bool scaled(const std::string& digits, int scale, double& value) {
  return parse_number(format("{}e{}", digits, -scale), &value);
}

// The double that is nearest to number / 10^scale.
bool scaled(std::int64_t number, int scale, double& value) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  constexpr int kExactPower = 22;  // 10^22 is the last that a double holds
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
  if (stored.size() > kMostDecimalBytes) return false;
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
    const std::int64_t number =
        width == 4 ? load<std::int32_t>(values.numbers, at) : load<std::int64_t>(values.numbers, at);
    if (!scaled(number, scale, value)) return false;
    out = put(value, out);
  }
  return true;
}

// Nanoseconds of a day, and the day as astronomers count: from noon at the first of January 4713 BC. Modulo
// 2^64: Spark lets days beyond an int32 overflow, and they come out right again.
void instants(Bytes stored, std::byte* out) {
  constexpr std::int64_t kDayOf1970 = 2'440'588;
  constexpr std::uint64_t kDay = 86'400'000'000;
  constexpr std::size_t kWidth = 12;
  for (std::size_t at = 0; at < stored.size(); at += kWidth) {
    const auto nanoseconds = load<std::int64_t>(stored, at);
    const std::int64_t day = std::int64_t{load<std::int32_t>(stored, at + sizeof nanoseconds)} - kDayOf1970;
    const std::int64_t part = nanoseconds / 1000 - (nanoseconds % 1000 < 0 ? 1 : 0);
    out = put(static_cast<std::uint64_t>(day) * kDay + static_cast<std::uint64_t>(part), out);
  }
}

}  // namespace

bool is_stored_as_it_is(const SchemaLeaf& leaf) {
  return !leaf.layout.is_decimal && leaf.layout.stored.number_bytes() == byte_width(leaf.is.type);
}

bool convert_numbers(const SchemaLeaf& leaf, const StoredValues& values, std::byte* out) {
  if (leaf.layout.is_decimal) return decimals(leaf, values, out);
  if (leaf.layout.stored.type == kParquetInt96) {
    instants(values.numbers, out);
    return true;
  }
  for (const std::string_view stored : values.texts)
    out = std::ranges::copy(std::as_bytes(std::span(stored)), out).out;
  if (byte_width(leaf.is.type) == 1) narrow<4, 1>(values.numbers, out);
  if (byte_width(leaf.is.type) == 2) narrow<4, 2>(values.numbers, out);
  return true;
}

}  // namespace stoker::formats
