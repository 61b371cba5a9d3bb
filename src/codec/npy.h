// NumPy's .npy files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), versions 1 to
// 3, from untrusted bytes. Used by the loader and by imports of arrays. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "stoker/status.h"
#include "stoker/tensor_view.h"

namespace stoker::codec {

/// The parsed header, and the offset of the elements.
struct NpyInfo {
  DType element = DType::f32;
  Shape shape;
  std::size_t data_offset = 0;
  bool is_big_endian = false;  ///< only of read_npy_header()
};

/// The parsed header for elements of any type.
struct NpyLayout {
  std::string type;  ///< in NumPy's notation: "<f4"; "[" for records
  bool is_fortran = false;
  Shape shape;
  std::size_t data_offset = 0;
};

/// Limit on the bytes before the elements.
inline constexpr std::size_t kMaxNpyHeaderBytes = (64u << 10) + 12;
/// Corrupt if the file is not .npy, Invalid for an unknown version.
Result<NpyLayout> read_npy_layout(std::span<const std::byte> beginning);
/// Parses the beginning of a file of `file_bytes`: all of it, or kMaxNpyHeaderBytes. Fails as read_npy(), but
/// accepts big-endian numbers.
Result<NpyInfo> read_npy_header(std::span<const std::byte> beginning, std::uint64_t file_bytes);

/// Corrupt if the file is not .npy or shorter than its header requires; Invalid for unsupported content:
/// big-endian numbers, complex numbers, objects, records, Fortran order.
Result<NpyInfo> read_npy(std::span<const std::byte> file);

/// The header of a .npy file, version 1, in C order, padded as NumPy does. REQUIRES: a type that NumPy has
/// (not bf16).
std::string npy_header(DType element, const Shape& shape);

}  // namespace stoker::codec
