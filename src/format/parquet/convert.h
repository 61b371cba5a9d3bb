// From what a Parquet file stores to what a leaf's values are. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <vector>

#include "format/parquet/pages/values.h"
#include "format/parquet/schema.h"

namespace stoker::formats {

/// Puts `values`, as they are stored in a leaf of numbers, into `numbers` as ParquetValues has them, in place
/// of what was there. False for what is no such number.
bool convert_numbers(const SchemaLeaf& leaf, const PageValues& values, std::vector<std::byte>& numbers);

}  // namespace stoker::formats
