// Converts stored Parquet values to a leaf's values. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "parquet/pages/values.h"
#include "parquet/schema/schema.h"

namespace stoker::parquet {

/// Stored values of one page; one of the two is empty.
struct StoredValues {
  std::span<const std::byte> numbers;
  std::span<const std::string_view> texts;
};

/// Whether a numeric leaf is stored as in ParquetValues.
bool needs_no_conversion(const SchemaLeaf& leaf);
/// Converts stored values to numbers as in ParquetValues, byte_width() each. False for invalid values.
bool convert_numbers(const SchemaLeaf& leaf, const StoredValues& values, std::byte* out);
/// Converts a stored bound of statistics to the type of ParquetValues::numbers; nullopt for an invalid one.
std::optional<std::string> convert_bound(const SchemaLeaf& leaf, const std::optional<std::string>& stored);

}  // namespace stoker::parquet
