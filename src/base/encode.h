// Bytes and text written so that another language takes them: Base64, HTML. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

/// Base64 with padding and the ordinary alphabet. https://www.rfc-editor.org/rfc/rfc4648#section-4
std::string base64(std::span<const std::byte> bytes);

/// Text for HTML, between tags and inside quoted attributes: & < > " ' become character references.
std::string escape_html(std::string_view text);

}  // namespace stoker
