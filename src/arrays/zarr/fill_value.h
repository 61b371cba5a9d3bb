// Fill values of Zarr arrays, from and to JSON. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/chunks/element_type.h"
#include "stoker/status.h"

namespace stoker::arrays {

/// Converts a fill_value in JSON to the bytes of one element: numbers, "NaN", "Infinity", "-Infinity", bit
/// patterns ("0x7fc00001"), pairs for complex numbers, Base64 or lists of bytes for bytes; null is zero. For
/// values of variable length, the bytes of one value: text or bytes of at most 1 MiB, or nothing.
Result<std::vector<std::byte>> parse_fill_value(const codec::ElementType& type, std::string_view json);
/// Converts an element to JSON for parse_fill_value() and other readers of versions 2 and 3.
std::string fill_value_json(const codec::ElementType& type, std::span<const std::byte> element, int version);

}  // namespace stoker::arrays
