// Bytes and text as other languages take them: Base64, HTML, UTF-8. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

/// Base64 with padding and the ordinary alphabet. https://www.rfc-editor.org/rfc/rfc4648#section-4
std::string base64(std::span<const std::byte> bytes);

/// Whether the bytes are UTF-8 from end to end, as utf8_length() of base/text.h judges: JSON takes no others.
bool is_utf8(std::string_view text);

/// Text as a JSON string, in quotes, on one line. What is not UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

/// Text for HTML, between tags and inside quoted attributes: & < > " ' become character references.
std::string escape_html(std::string_view text);

}  // namespace stoker
