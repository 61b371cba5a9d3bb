// NumPy's .npy files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), versions 1 to
// 3, from bytes that nobody vouches for. Used by the loader, and where arrays
// are imported. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
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
  bool is_big_endian = false;  ///< only of read_npy_header()
};

/// What the header says, of elements of any type.
struct NpyLayout {
  std::string type;  ///< as NumPy spells it: "<f4"; "[" of records
  bool is_fortran = false;
  Shape shape;
  std::size_t data_at = 0;
};

/// At most so many bytes stand before the elements.
inline constexpr std::size_t kLongestNpyHeader = (64u << 10) + 12;
/// Corrupt for what is no .npy, Invalid for a version that is not known.
Result<NpyLayout> read_npy_layout(std::span<const std::byte> beginning);
/// Of a file of `file_bytes` that begins so: all of them, or kLongestNpyHeader. Fails as read_npy(), but
/// takes big-endian numbers.
Result<NpyInfo> read_npy_header(std::span<const std::byte> beginning, std::uint64_t file_bytes);

/// Fails with Corrupt for what is no .npy or is shorter than its header promises, with Invalid for what it
/// holds but we do not take: big-endian numbers, complex numbers, objects, records, Fortran order.
Result<NpyInfo> read_npy(std::span<const std::byte> file);

/// The beginning of such a file, version 1, whose elements follow in C order: padded as NumPy pads it.
/// REQUIRES: a type that NumPy has (not bf16).
std::string npy_header(DType element, const Shape& shape);

}  // namespace stoker::data
