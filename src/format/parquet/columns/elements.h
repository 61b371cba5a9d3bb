// Numbers of a Parquet leaf as elements of another type. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>

#include "base/tensor_view.h"
#include "format/parquet/leaf.h"

namespace stoker::formats {

/// Puts the number of each slot, by store_number()'s rules, to `out`, `fill` (one element) where it is
/// missing. False where one cannot be such an element. REQUIRES: number_type(leaf), and room for all.
bool put_elements(const ParquetLeaf& leaf, const ParquetValues& values, DType element,
                  std::span<const std::byte> fill, std::byte* out);

}  // namespace stoker::formats
