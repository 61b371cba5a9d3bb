// Converts numbers of a Parquet leaf to elements of a given type. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>

#include "parquet/schema/leaf.h"
#include "stoker/tensor_view.h"

namespace stoker::parquet {

/// Writes the number of each slot to `out`, by store_number()'s rules, and `fill` (one element) for nulls.
/// False if a number cannot be converted. REQUIRES: number_type(leaf), and space for all slots.
bool put_elements(const ParquetLeaf& leaf, const ParquetValues& values, DType element,
                  std::span<const std::byte> fill, std::byte* out);

}  // namespace stoker::parquet
