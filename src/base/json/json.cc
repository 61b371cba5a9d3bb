#include "base/json/json.h"

namespace stoker {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr int kDeepest = 512;

bool is_deep(std::string_view text) {
  int depth = 0;
  bool is_inside = false;  // a quoted string
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_inside && c == '\\') {
      ++i;
    } else if (c == '"') {
      is_inside = !is_inside;
    } else if (!is_inside && (c == '[' || c == '{')) {
      if (++depth > kDeepest) return true;
    } else if (!is_inside && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return false;
}

template <typename Value>
Value parse(std::string_view text) {
  if (is_deep(text)) return Value(Value::value_t::discarded);
  return Value::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

template <>
json parse_json(std::string_view text) {
  return parse<json>(text);
}

template <>
ordered_json parse_json(std::string_view text) {
  return parse<ordered_json>(text);
}

std::string json_text(const json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

std::string json_text(const ordered_json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace);
}

std::string json_ascii(const json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

std::string json_ascii(const ordered_json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/true, ordered_json::error_handler_t::replace);
}

}  // namespace stoker
