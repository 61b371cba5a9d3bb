#include "arrays/zarr/data_type.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/json/json.h"

namespace stoker::arrays {

namespace {

using Kind = codec::ElementType::Kind;

constexpr std::uint32_t kMaxElementBytes = 1u << 20;

struct Named {
  std::string_view name;
  DType dtype;
  char letter;
};
constexpr std::array kNamed = {
    Named{"bool", DType::boolean, 'b'},  Named{"int8", DType::i8, 'i'},     Named{"uint8", DType::u8, 'u'},
    Named{"int16", DType::i16, 'i'},     Named{"uint16", DType::u16, 'u'},  Named{"float16", DType::f16, 'f'},
    Named{"bfloat16", DType::bf16, 'E'}, Named{"int32", DType::i32, 'i'},   Named{"uint32", DType::u32, 'u'},
    Named{"float32", DType::f32, 'f'},   Named{"float64", DType::f64, 'f'}, Named{"int64", DType::i64, 'i'},
    Named{"uint64", DType::u64, 'u'}};

Status unknown(std::string_view name) {
  return invalid(
      "data type '{}' is not supported (numbers, complex numbers, times and text of a fixed size are)",
      printable(name));
}

codec::ElementType plain(Kind kind, std::uint32_t bytes, char letter) {
  return {.kind = kind, .bytes = bytes, .letter = letter, .time_unit = {}};
}

// NumPy's units, possibly with a factor.
bool is_time_unit(std::string_view unit) {
  constexpr std::string_view kUnits[] = {"Y",  "M",       "W",  "D",  "h",  "m",  "s",      "ms",
                                         "us", "\u03bcs", "ns", "ps", "fs", "as", "generic"};
  const std::size_t letters = unit.find_first_not_of("0123456789");
  if (letters == std::string_view::npos) return false;
  return std::find(std::begin(kUnits), std::end(kUnits), unit.substr(letters)) != std::end(kUnits);
}

// The letter and number of a version 2 dtype, without byte order and unit.
Result<codec::ElementType> v2_type(char letter, std::uint64_t size, std::string_view name) {
  if (size == 0 || size > kMaxElementBytes) return unknown(name);
  const auto bytes = static_cast<std::uint32_t>(size);
  if (letter == 'S' || letter == 'V') return plain(Kind::bytes, bytes, letter);
  if (letter == 'U') return plain(Kind::text, bytes * 4, letter);
  if (letter == 'M' || letter == 'm')
    return bytes == 8 ? Result(plain(Kind::time, 8, letter)) : unknown(name);
  if (letter == 'c') {
    return bytes == 8 || bytes == 16 ? Result(plain(Kind::complex, bytes, 'c')) : unknown(name);
  }
  for (const Named& named : kNamed) {
    if (named.letter == letter && letter != 'E' && size_of(named.dtype) == bytes)
      return codec::element_type(named.dtype);
  }
  return unknown(name);
}

// The configuration of a version 3 type that has one.
Result<codec::ElementType> configured(const std::string& name, const nlohmann::json& configuration) {
  const auto number = [&](const char* key) -> std::uint64_t {
    const auto found = configuration.find(key);
    return found != configuration.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
  };
  const std::uint64_t bytes = number("length_bytes");
  const bool has_length = bytes > 0 && bytes <= kMaxElementBytes;
  const auto size = static_cast<std::uint32_t>(has_length ? bytes : 0);
  if (name == "null_terminated_bytes" && has_length) return plain(Kind::bytes, size, 'S');
  if (name == "raw_bytes" && has_length) return plain(Kind::bytes, size, 'V');
  if (name == "fixed_length_utf32" && has_length && bytes % 4 == 0) return plain(Kind::text, size, 'U');
  if (name == "numpy.datetime64" || name == "numpy.timedelta64") {
    codec::ElementType type = plain(Kind::time, 8, name == "numpy.datetime64" ? 'M' : 'm');
    const auto unit = configuration.find("unit");
    if (unit == configuration.end() || !unit->is_string()) return unknown(name);
    if (!is_time_unit(unit->get_ref<const std::string&>())) return unknown(name);
    const std::uint64_t factor = number("scale_factor");
    type.time_unit = (factor > 1 ? std::to_string(factor) : "") + unit->get<std::string>();
    return type;
  }
  return unknown(name);
}

}  // namespace

Result<ZarrTypeV2> parse_zarr_v2_type(std::string_view name) {
  if (name.size() < 3 || (name[0] != '<' && name[0] != '>' && name[0] != '|')) return unknown(name);
  std::string_view digits = name.substr(2);
  std::string unit;
  if (const std::size_t bracket = digits.find('['); bracket != std::string_view::npos) {
    if (digits.back() != ']' || digits.size() - bracket > 16) return unknown(name);
    unit = digits.substr(bracket + 1, digits.size() - bracket - 2);
    digits = digits.substr(0, bracket);
  }
  std::uint64_t size = 0;
  if (!parse_number(digits, &size)) return unknown(name);
  STOKER_ASSIGN_OR_RETURN(type, v2_type(name[1], size, name));
  if (type.kind == Kind::time ? !is_time_unit(unit) : !unit.empty()) return unknown(name);
  type.time_unit = unit;
  return ZarrTypeV2{std::move(type), name[0] == '>' ? codec::ByteOrder::big : codec::ByteOrder::little};
}

std::optional<std::string> zarr_v2_name(const codec::ElementType& type, codec::ByteOrder order) {
  if (type.kind == Kind::bfloat) return std::nullopt;
  if (type.kind == Kind::variable_length) return "|O";
  const std::uint32_t size = type.kind == Kind::text ? type.bytes / 4 : type.bytes;
  const char sign = type.swap_unit() == 1 ? '|' : order == codec::ByteOrder::big ? '>' : '<';
  std::string name = format("{}{}{}", sign, type.letter, size);
  if (type.kind == Kind::time) name += format("[{}]", type.time_unit);
  return name;
}

Result<codec::ElementType> parse_zarr_v3_type(std::string_view json) {
  const nlohmann::json value = parse_json<nlohmann::json>(json);
  if (value.is_object()) {
    const auto name = value.find("name");
    if (name == value.end() || !name->is_string()) return unknown(json.substr(0, 80));
    const auto configuration = value.find("configuration");
    if (configuration != value.end() && configuration->is_object() && !configuration->empty()) {
      return configured(name->get<std::string>(), *configuration);
    }
    return parse_zarr_v3_type(name->dump());
  }
  if (!value.is_string()) return unknown(json.substr(0, 80));
  const std::string name = value.get<std::string>();
  for (const Named& named : kNamed) {
    if (named.name == name) return codec::element_type(named.dtype);
  }
  if (name == "string") return codec::ElementType::variable_length_of(codec::ElementType::kText);
  if (name == "variable_length_bytes" || name == "bytes")
    return codec::ElementType::variable_length_of(codec::ElementType::kBytes);
  if (name == "complex64") return plain(Kind::complex, 8, 'c');
  if (name == "complex128") return plain(Kind::complex, 16, 'c');
  std::uint64_t bits = 0;
  if (name.size() > 1 && name[0] == 'r' && parse_number(std::string_view(name).substr(1), &bits) &&
      bits > 0 && bits % 8 == 0 && bits / 8 <= kMaxElementBytes) {
    return plain(Kind::bytes, static_cast<std::uint32_t>(bits / 8), 'V');
  }
  return unknown(name);
}

std::string zarr_v3_name(const codec::ElementType& type) {
  if (const std::optional<DType> dtype = type.dtype()) {
    for (const Named& named : kNamed) {
      if (named.dtype == *dtype) return format("\"{}\"", named.name);
    }
  }
  if (type.kind == Kind::complex) return format("\"complex{}\"", type.bytes * 8);
  if (type.kind == Kind::variable_length)
    return type.letter == codec::ElementType::kText ? "\"string\"" : "\"variable_length_bytes\"";
  if (type.kind == Kind::time) {
    const std::size_t letters = type.time_unit.find_first_not_of("0123456789");
    std::uint64_t factor = 1;
    parse_number(std::string_view(type.time_unit).substr(0, letters), &factor);
    const nlohmann::json json = {
        {"name", type.letter == 'M' ? "numpy.datetime64" : "numpy.timedelta64"},
        {"configuration", {{"unit", type.time_unit.substr(letters)}, {"scale_factor", factor}}}};
    return json_text(json);
  }
  const char* name = type.kind == Kind::text ? "fixed_length_utf32"
                     : type.letter == 'S'    ? "null_terminated_bytes"
                                             : "raw_bytes";
  return json_text(nlohmann::json{{"name", name}, {"configuration", {{"length_bytes", type.bytes}}}});
}

}  // namespace stoker::arrays
