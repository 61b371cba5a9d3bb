// Converts tensor elements of any type to numbers. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>

#include "stoker/tensor_view.h"

namespace stoker::checkpoint {

/// Converts elements to double; exact except for 64-bit integers beyond 2^53. f16 is IEEE 754 binary16, bf16
/// the upper half of a float. REQUIRES: bytes.size() == out.size() * size_of(dtype).
void to_doubles(DType dtype, std::span<const std::byte> bytes, std::span<double> out);

}  // namespace stoker::checkpoint
