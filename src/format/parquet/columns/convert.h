// From what a Parquet file stores to what a leaf's values are. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "format/parquet/pages/values.h"
#include "format/parquet/schema.h"

namespace stoker::formats {

/// Values of one page as they are stored, one of the two empty.
struct StoredValues {
  std::span<const std::byte> numbers;
  std::span<const std::string_view> texts;
};

/// Whether a leaf of numbers has them as ParquetValues does: then there is nothing to convert.
bool is_stored_as_it_is(const SchemaLeaf& leaf);
/// Puts other numbers to `out` as ParquetValues has them, byte_width() each. False for what is no such
/// number.
bool convert_numbers(const SchemaLeaf& leaf, const StoredValues& values, std::byte* out);

}  // namespace stoker::formats
