// JSON by nlohmann's library. What of it takes long to compile, its parser and its writer, is compiled once
// for all sources; they come here in place of its own header. Only for .cc files and headers that are not
// installed: it brings in nlohmann. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace stoker {

/// The value that `text` holds, as nlohmann::json or nlohmann::ordered_json; for what is not JSON one that
/// is_discarded(), and so no object, no list and no text; so too for what is over 512 deep, since what walks
/// over it calls itself. Never throws. RFC 8259.
template <typename Value>
Value parse_json(std::string_view text);
template <>
nlohmann::json parse_json(std::string_view text);
template <>
nlohmann::ordered_json parse_json(std::string_view text);

/// The value as text: in one line, or with `indent` blanks for each level. What is not UTF-8 becomes U+FFFD.
/// Never throws.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

/// The same in one line of ASCII: all other characters as \uXXXX.
std::string json_ascii(const nlohmann::json& value);
std::string json_ascii(const nlohmann::ordered_json& value);

}  // namespace stoker
