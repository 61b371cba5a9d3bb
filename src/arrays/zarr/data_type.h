// Names of the element types of Zarr arrays, in version 2 ("<f4") and version 3 ("float32"). In memory,
// elements have native byte order. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codec/chunks/element_type.h"
#include "stoker/status.h"

namespace stoker::arrays {

/// A version 2 dtype: type and byte order. Invalid for variable-size, structured and unknown types.
struct ZarrTypeV2 {
  codec::ElementType type;
  codec::ByteOrder order = codec::ByteOrder::little;
};
Result<ZarrTypeV2> parse_zarr_v2_type(std::string_view name);
/// "<f4", "|u1". Nothing for bfloat16, which version 2 does not have.
std::optional<std::string> zarr_v2_name(const codec::ElementType& type, codec::ByteOrder order);

/// A version 3 data_type, as JSON text: a name, or an object with name and configuration.
Result<codec::ElementType> parse_zarr_v3_type(std::string_view json);
/// As JSON text.
std::string zarr_v3_name(const codec::ElementType& type);

}  // namespace stoker::arrays
