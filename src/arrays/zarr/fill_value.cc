#include "arrays/zarr/fill_value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/encode.h"
#include "base/json/json.h"
#include "stoker/text.h"

namespace stoker::arrays {

namespace {

using Kind = codec::ElementType::Kind;
using ElementBytes = std::vector<std::byte>;

constexpr std::size_t kMaxValueBytes = 1u << 20;  // of one element in the chunk map of an index

template <typename T>
ElementBytes bytes_of(T value) {
  ElementBytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <typename T>
T value_of(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// The nearest IEEE half of a number, ties to even.
std::uint16_t half_bits(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | 0x7E00;
  const double size = std::abs(value);
  if (size >= 65520) return sign | 0x7C00;
  if (size < std::ldexp(1, -14))
    return sign | static_cast<std::uint16_t>(std::nearbyint(std::ldexp(size, 24)));
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);                                         // in [0.5, 1)
  const auto mantissa = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(fraction, 11)));  // 1024 .. 2048
  return static_cast<std::uint16_t>(sign + ((static_cast<std::uint32_t>(exponent + 13) << 10) + mantissa));
}

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double size = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  if (exponent == 31) size = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  return (bits & 0x8000) != 0 ? -size : size;
}

std::uint16_t brain_bits(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

double float_value(const codec::ElementType& type, std::span<const std::byte> bytes) {
  if (type.kind == Kind::bfloat) {
    return std::bit_cast<float>(std::uint32_t{value_of<std::uint16_t>(bytes)} << 16);
  }
  if (bytes.size() == 2) return half_value(value_of<std::uint16_t>(bytes));
  return bytes.size() == 4 ? value_of<float>(bytes) : value_of<double>(bytes);
}

// The beginning of the JSON text.
std::string excerpt(const nlohmann::json& value) {
  constexpr std::size_t kLongest = 60;
  return printable(clipped(json_ascii(value), kLongest));
}

Status does_not_fit(const nlohmann::json& value) {
  return invalid("fill value {} does not fit the data type", excerpt(value));
}

// "0x7fc00000": the bits, most significant first.
Result<ElementBytes> bit_pattern(const std::string& text, std::size_t size, const nlohmann::json& value) {
  if (text.size() != 2 + 2 * size) return does_not_fit(value);
  ElementBytes bytes(size);
  for (std::size_t i = 0; i < 2 * size; ++i) {
    const char c = text[2 + i];
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (digit < 0) return does_not_fit(value);
    std::byte& byte = bytes[size - 1 - i / 2];
    byte = byte << 4 | static_cast<std::byte>(digit);
  }
  return bytes;
}

Result<ElementBytes> float_bytes(Kind kind, std::size_t size, const nlohmann::json& value) {
  double number = 0;
  if (value.is_number()) {
    number = value.get<double>();
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.starts_with("0x")) return bit_pattern(text, size, value);
    if (text == "NaN") {
      number = std::nan("");
    } else if (text == "Infinity" || text == "-Infinity") {
      number = text[0] == '-' ? -HUGE_VAL : HUGE_VAL;
    } else {
      return does_not_fit(value);
    }
  } else {
    return does_not_fit(value);
  }
  if (kind == Kind::bfloat) return bytes_of(brain_bits(number));
  if (size == 2) return bytes_of(half_bits(number));
  return size == 4 ? bytes_of(static_cast<float>(number)) : bytes_of(number);
}

Result<ElementBytes> integer_bytes(bool is_signed, std::size_t size, const nlohmann::json& value) {
  nlohmann::json whole = value;
  // Some writers store 0.0 for 0.
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::abs(number) < 9e15 && std::trunc(number) == number) whole = static_cast<std::int64_t>(number);
  }
  if (whole.is_boolean()) whole = whole.get<bool>() ? 1 : 0;
  if (!whole.is_number_integer()) return does_not_fit(value);
  const bool is_negative = !whole.is_number_unsigned() && whole.get<std::int64_t>() < 0;
  const auto bits = whole.is_number_unsigned() ? whole.get<std::uint64_t>()
                                               : static_cast<std::uint64_t>(whole.get<std::int64_t>());
  const int width = static_cast<int>(size * 8);
  const std::uint64_t most = ~std::uint64_t{0} >> (64 - width) >> (is_signed ? 1 : 0);
  const bool fits = is_negative ? is_signed && ~bits <= most : bits <= most;
  if (!fits) return does_not_fit(value);
  ElementBytes bytes = bytes_of(bits);
  bytes.resize(size);
  return bytes;
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// A list of numbers, or Base64.
Result<ElementBytes> byte_list(const nlohmann::json& value) {
  ElementBytes bytes;
  if (value.is_array()) {
    for (const nlohmann::json& byte : value) {
      if (!byte.is_number_unsigned() || byte.get<std::uint64_t>() > 255) return does_not_fit(value);
      bytes.push_back(static_cast<std::byte>(byte.get<std::uint64_t>()));
    }
    return bytes;
  }
  if (!value.is_string()) return does_not_fit(value);
  std::uint32_t bits = 0;
  int have = 0;
  for (const char c : value.get_ref<const std::string&>()) {
    if (c == '=') break;
    const int digit = base64_digit(c);
    if (digit < 0) return does_not_fit(value);
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> have & 255));
  }
  return bytes;
}

// The bytes of an element. Base64 may omit trailing zeros.
Result<ElementBytes> raw_bytes(std::size_t size, const nlohmann::json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() == 0) return ElementBytes(size);
  STOKER_ASSIGN_OR_RETURN(bytes, byte_list(value));
  if (bytes.size() > size || (value.is_array() && bytes.size() != size)) return does_not_fit(value);
  bytes.resize(size);
  return bytes;
}

// A value of variable length. NumPy's object 0 means empty.
Result<ElementBytes> variable_length_bytes(char letter, const nlohmann::json& value) {
  if (value.is_null() || value == "" || value == 0) return ElementBytes();
  if (letter == codec::ElementType::kNumbers) {
    return invalid("fill value {} is not supported: missing lists of numbers can only be empty",
                   excerpt(value));
  }
  ElementBytes bytes;
  if (letter == codec::ElementType::kBytes) {
    STOKER_ASSIGN_OR_RETURN(decoded, byte_list(value));
    bytes = std::move(decoded);
  } else if (value.is_string()) {
    const auto text = std::as_bytes(std::span(value.get_ref<const std::string&>()));
    bytes.assign(text.begin(), text.end());
  } else {
    return does_not_fit(value);
  }
  if (bytes.size() > kMaxValueBytes)
    return invalid("fill value {} has {} bytes (at most {} are supported)", excerpt(value),
                   grouped(bytes.size()), grouped(kMaxValueBytes));
  return bytes;
}

// The code point of one valid sequence of UTF-8.
std::uint32_t code_point(std::string_view sequence) {
  constexpr std::uint8_t kLeadByteMask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  std::uint32_t code = static_cast<std::uint8_t>(sequence[0]) & kLeadByteMask[sequence.size()];
  for (const char c : sequence.substr(1)) code = code << 6 | (static_cast<std::uint8_t>(c) & 0x3F);
  return code;
}

Result<ElementBytes> text_bytes(std::size_t size, const nlohmann::json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() == 0) return ElementBytes(size);
  if (!value.is_string()) return does_not_fit(value);
  ElementBytes bytes;
  for (std::string_view rest = value.get_ref<const std::string&>(); !rest.empty();) {
    const std::size_t length = utf8_length(rest);
    if (length == 0 || rest[0] == '\0') return does_not_fit(value);
    const ElementBytes letter = bytes_of(code_point(rest.substr(0, length)));
    bytes.insert(bytes.end(), letter.begin(), letter.end());
    rest.remove_prefix(length);
  }
  if (bytes.size() > size) return does_not_fit(value);
  bytes.resize(size);
  return bytes;
}

nlohmann::json number_json(const codec::ElementType& type, std::span<const std::byte> bytes) {
  const double value = float_value(type, bytes);
  if (std::isnan(value)) {
    const Result<ElementBytes> ordinary = float_bytes(type.kind, bytes.size(), "NaN");
    if (ordinary.ok() && std::equal(bytes.begin(), bytes.end(), ordinary->begin())) return "NaN";
    return format("0x{}", hex(ElementBytes(bytes.rbegin(), bytes.rend())));
  }
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return value;
}

nlohmann::json integer_json(bool is_signed, std::span<const std::byte> bytes) {
  const bool is_negative = is_signed && (bytes.back() & std::byte{0x80}) != std::byte{0};
  std::uint64_t bits = is_negative ? ~std::uint64_t{0} : 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return is_negative ? nlohmann::json(static_cast<std::int64_t>(bits)) : nlohmann::json(bits);
}

}  // namespace

Result<ElementBytes> parse_fill_value(const codec::ElementType& type, std::string_view json) {
  const nlohmann::json value = parse_json<nlohmann::json>(json);
  if (type.kind == Kind::variable_length) return variable_length_bytes(type.letter, value);
  if (value.is_null()) return ElementBytes(type.bytes);
  switch (type.kind) {
    case Kind::boolean:
      if (!value.is_boolean() && value != 0 && value != 1) return does_not_fit(value);
      return integer_bytes(false, 1, value);
    case Kind::signed_integer:
      return integer_bytes(true, type.bytes, value);
    case Kind::unsigned_integer:
      return integer_bytes(false, type.bytes, value);
    case Kind::time:
      if (value.is_string() && value == "NaT") return bytes_of(std::numeric_limits<std::int64_t>::min());
      return integer_bytes(true, type.bytes, value);
    case Kind::floating:
    case Kind::bfloat:
      return float_bytes(type.kind, type.bytes, value);
    case Kind::complex: {
      if (value.is_number()) {
        STOKER_ASSIGN_OR_RETURN(real, float_bytes(Kind::floating, type.bytes / 2, value));
        real.resize(type.bytes);
        return real;
      }
      if (!value.is_array() || value.size() != 2) return does_not_fit(value);
      STOKER_ASSIGN_OR_RETURN(both, float_bytes(Kind::floating, type.bytes / 2, value[0]));
      STOKER_ASSIGN_OR_RETURN(imaginary, float_bytes(Kind::floating, type.bytes / 2, value[1]));
      both.insert(both.end(), imaginary.begin(), imaginary.end());
      return both;
    }
    case Kind::bytes:
      return raw_bytes(type.bytes, value);
    case Kind::text:
      return text_bytes(type.bytes, value);
    case Kind::variable_length:
      break;
  }
  return does_not_fit(value);
}

std::string fill_value_json(const codec::ElementType& type, std::span<const std::byte> element, int version) {
  switch (type.kind) {
    case Kind::boolean:
      return element[0] == std::byte{0} ? "false" : "true";
    case Kind::signed_integer:
    case Kind::time:
      return json_text(integer_json(true, element));
    case Kind::unsigned_integer:
      return json_text(integer_json(false, element));
    case Kind::floating:
    case Kind::bfloat:
      return json_text(number_json(type, element));
    case Kind::complex: {
      const codec::ElementType half = {
          .kind = Kind::floating, .bytes = type.bytes / 2, .letter = 'f', .time_unit = {}};
      return json_text(nlohmann::json::array(
          {number_json(half, element.first(half.bytes)), number_json(half, element.last(half.bytes))}));
    }
    case Kind::bytes:
      if (version == 2 || type.letter == 'S') return json_text(nlohmann::json(base64(element)));
      {
        nlohmann::json list = nlohmann::json::array();
        for (const std::byte byte : element) list.push_back(static_cast<int>(byte));
        return json_text(list);
      }
    case Kind::text:
      return json_text(nlohmann::json(codec::utf32_to_utf8(element)));
    case Kind::variable_length:
      if (type.letter == codec::ElementType::kBytes) return json_text(nlohmann::json(base64(element)));
      return json_text(
          nlohmann::json(std::string(reinterpret_cast<const char*>(element.data()), element.size())));
  }
  return "null";
}

}  // namespace stoker::arrays
