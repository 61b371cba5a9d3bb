// JSON with nlohmann's library. Parser and writer are compiled once, because they compile slowly. Include
// this header instead of nlohmann's. Only for .cc files and headers that are not installed, because it
// includes nlohmann. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace stoker {

/// Parses `text`. For invalid JSON, and for JSON nested deeper than 512 levels, the value is_discarded() and
/// is neither an object nor an array nor a string. Never throws. RFC 8259.
template <typename Value>
Value parse_json(std::string_view text);
template <>
nlohmann::json parse_json(std::string_view text);
template <>
nlohmann::ordered_json parse_json(std::string_view text);

/// Serializes `value` on one line, or with `indent` blanks per level. Invalid UTF-8 becomes U+FFFD. Never
/// throws.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

/// The same in one line of ASCII: other characters become \uXXXX.
std::string json_ascii(const nlohmann::json& value);
std::string json_ascii(const nlohmann::ordered_json& value);

}  // namespace stoker
