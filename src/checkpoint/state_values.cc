#include "stoker/state_values.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/encode.h"
#include "base/json/json.h"

namespace stoker::checkpoint {

namespace {

using Json = nlohmann::json;
using Value = StateValues::Value;

// Values without a JSON type are objects with one member.
constexpr const char* kNumber = "number";       // "nan", "inf", "-inf"
constexpr const char* kBytes = "bytes";         // hexadecimal
constexpr const char* kTextBytes = "text_hex";  // text that is not UTF-8

std::string_view kind_of(const Value& value) {
  constexpr std::string_view kKinds[] = {"a truth value", "an integer", "an integer",
                                         "a number",      "text",       "bytes"};
  return kKinds[value.index()];
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return std::nullopt;
}

std::optional<StateValues::Bytes> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  StateValues::Bytes bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const auto high = hex_digit(text[i]);
    const auto low = hex_digit(text[i + 1]);
    if (!high || !low) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(*high * 16 + *low));
  }
  return bytes;
}

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  return Json{{kNumber, std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"}};
}

Json text_json(const std::string& text) {
  if (is_utf8(text)) return text;
  return Json{{kTextBytes, hex(std::as_bytes(std::span(text)))}};
}

Json value_json(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return number_json(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return text_json(*text);
  if (const auto* bytes = std::get_if<StateValues::Bytes>(&value)) return Json{{kBytes, hex(*bytes)}};
  if (const auto* truth = std::get_if<bool>(&value)) return *truth;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  return std::get<std::uint64_t>(value);
}

std::optional<Value> tagged_value(const Json& json) {
  if (json.size() != 1 || !json.begin()->is_string()) return std::nullopt;
  const std::string& text = json.begin()->get_ref<const std::string&>();
  if (json.begin().key() == kNumber) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf") return kInfinity;
    if (text == "-inf") return -kInfinity;
    return std::nullopt;
  }
  std::optional<StateValues::Bytes> bytes = from_hex(text);
  if (!bytes) return std::nullopt;
  if (json.begin().key() == kBytes) return std::move(*bytes);
  if (json.begin().key() != kTextBytes) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

std::optional<Value> value_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<std::int64_t>();
    case Json::value_t::number_unsigned:
      return json.get<std::uint64_t>();
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return json.get<std::string>();
    case Json::value_t::object:
      return tagged_value(json);
    default:
      return std::nullopt;
  }
}

Status wrong_kind(std::string_view name, const Value& value, std::string_view wanted) {
  return invalid("state: '{}' is {}, not {}", name, kind_of(value), wanted);
}

}  // namespace

void StateValues::set(std::string name, Value value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value); integer != nullptr && *integer >= 0) {
    value = static_cast<std::uint64_t>(*integer);
  }
  values_.insert_or_assign(std::move(name), std::move(value));
}

Result<StateValues::Value> StateValues::find(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return not_found("state: no value '{}'", name);
  return found->second;
}

Result<bool> StateValues::boolean(std::string_view name) const {
  STOKER_ASSIGN_OR_RETURN(value, find(name));
  if (const auto* truth = std::get_if<bool>(&value)) return *truth;
  return wrong_kind(name, value, "a truth value");
}

Result<std::int64_t> StateValues::integer(std::string_view name) const {
  STOKER_ASSIGN_OR_RETURN(value, find(name));
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  const auto* natural = std::get_if<std::uint64_t>(&value);
  if (natural == nullptr) return wrong_kind(name, value, "an integer");
  if (!std::in_range<std::int64_t>(*natural)) {
    return invalid("state: '{}' is {}, too large for a signed integer", name, *natural);
  }
  return static_cast<std::int64_t>(*natural);
}

Result<std::uint64_t> StateValues::natural(std::string_view name) const {
  STOKER_ASSIGN_OR_RETURN(value, find(name));
  if (const auto* natural = std::get_if<std::uint64_t>(&value)) return *natural;
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return invalid("state: '{}' is {}, which is negative", name, *number);
  }
  return wrong_kind(name, value, "an integer");
}

Result<double> StateValues::number(std::string_view name) const {
  STOKER_ASSIGN_OR_RETURN(value, find(name));
  if (const auto* number = std::get_if<double>(&value)) return *number;
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  const auto* natural = std::get_if<std::uint64_t>(&value);
  if (natural != nullptr && *natural <= std::uint64_t{kExact}) return static_cast<double>(*natural);
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer != nullptr && *integer >= -kExact) return static_cast<double>(*integer);
  return wrong_kind(name, value, "a number");
}

Result<std::string> StateValues::text(std::string_view name) const {
  STOKER_ASSIGN_OR_RETURN(value, find(name));
  if (auto* text = std::get_if<std::string>(&value)) return std::move(*text);
  return wrong_kind(name, value, "text");
}

Result<StateValues::Bytes> StateValues::bytes(std::string_view name) const {
  STOKER_ASSIGN_OR_RETURN(value, find(name));
  if (auto* bytes = std::get_if<Bytes>(&value)) return std::move(*bytes);
  return wrong_kind(name, value, "bytes");
}

std::string StateValues::to_json() const {
  Json json = Json::object();
  for (const auto& [name, value] : values_) json[name] = value_json(value);
  return json_text(json);
}

Result<StateValues> StateValues::parse(std::string_view subject, std::string_view json) {
  const Json parsed = parse_json<Json>(json);
  if (!parsed.is_object()) return corrupt("{}: state is not an object", subject);
  StateValues state;
  for (const auto& [name, member] : parsed.items()) {
    std::optional<Value> value = value_of(member);
    if (!value) return corrupt("{}: state '{}' is not a supported value", subject, printable(name));
    state.values_.insert_or_assign(name, std::move(*value));
  }
  return state;
}

}  // namespace stoker::checkpoint
