// Texts as bytes, for tests of formats. Not used outside tests.
#pragma once

#include <span>
#include <string_view>

namespace stoker::formats {

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace stoker::formats
