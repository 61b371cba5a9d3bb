// NumPy's .npy files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), versions 1 to
// 3, from bytes that nobody vouches for. Used by the loader, and where arrays
// are imported. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"
#include "base/tensor_view.h"

namespace stoker::data {

/// What the header says, and where the elements begin.
struct NpyInfo {
  DType element = DType::f32;
  Shape shape;
  std::size_t data_at = 0;
};

/// Fails with Corrupt for what is no .npy or is shorter than its header promises, with Invalid for what it
/// holds but we do not take: big-endian numbers, complex numbers, objects, records, Fortran order.
Result<NpyInfo> read_npy(std::span<const std::byte> file);

/// The beginning of such a file, version 1, whose elements follow in C order: padded as NumPy pads it.
/// REQUIRES: a type that NumPy has (not bf16).
std::string npy_header(DType element, const Shape& shape);

}  // namespace stoker::data
