// The element types of Zarr arrays and their fill values: names of version 2 ("<f4") and of version 3
// ("float32"), numbers as JSON spells them. In memory every element has this machine's byte order.
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/chunks/element_type.h"

namespace stoker::formats {

/// A version 2 dtype: type and byte order. Invalid for what has no fixed size, several fields or a name that
/// is not known.
struct ZarrTypeV2 {
  ElementType type;
  ByteOrder order = ByteOrder::little;
};
Result<ZarrTypeV2> parse_zarr_v2_type(std::string_view name);
/// "<f4", "|u1". Nothing for bfloat16, which version 2 does not know.
std::optional<std::string> zarr_v2_name(const ElementType& type, ByteOrder order);

/// A version 3 data_type, as JSON text: a name, or an object with name and configuration.
Result<ElementType> parse_zarr_v3_type(std::string_view json);
/// As JSON text.
std::string zarr_v3_name(const ElementType& type);

/// A fill_value, as JSON text, to the bytes of one element: numbers, "NaN", "Infinity", "-Infinity", bit
/// patterns
/// ("0x7fc00001"), pairs for complex numbers, Base64 or lists of bytes for bytes; null is zero.
Result<std::vector<std::byte>> parse_fill_value(const ElementType& type, std::string_view json);
/// The same the other way, readable by parse_fill_value() and other readers of version 2 and 3.
std::string fill_value_json(const ElementType& type, std::span<const std::byte> element, int version);

}  // namespace stoker::formats
