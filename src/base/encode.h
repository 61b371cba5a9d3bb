// Encodings of bytes and text: Base64, HTML, UTF-8. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

/// Base64 with padding and the ordinary alphabet. https://www.rfc-editor.org/rfc/rfc4648#section-4
std::string base64(std::span<const std::byte> bytes);
/// The bytes. Nullopt for other characters, line breaks and missing padding.
std::optional<std::string> decode_base64(std::string_view text);

/// Whether all of `text` is valid UTF-8, by utf8_length() of base/text.h. JSON requires it.
bool is_utf8(std::string_view text);

/// `text` as a JSON string literal on one line. Invalid UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

/// Escapes & < > " ' as character references, for text nodes and quoted attributes of HTML.
std::string escape_html(std::string_view text);

}  // namespace stoker
