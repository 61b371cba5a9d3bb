// What the elements of stored arrays are: numbers, complex numbers, times, bytes and text of a fixed size.
// Shared by Zarr and HDF5. In memory every element has this machine's byte order. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/tensor_view.h"

namespace stoker::formats {

/// Whether numbers are stored with the low byte first.
enum class ByteOrder { little, big };

struct ElementType {
  /// `bytes` is text of a fixed size or anything that is only carried; `text` is UTF-32; `time` counts
  /// `time_unit`.
  enum class Kind { boolean, signed_integer, unsigned_integer, floating, brain, complex, bytes, text, time };
  Kind kind = Kind::floating;
  std::uint32_t bytes = 4;  ///< of an element
  char letter = 'f';        ///< as NumPy has it: V and S are both `bytes`, M and m both `time`
  std::string time_unit;    ///< "ns", "25s": NumPy's spelling, without the brackets

  /// What a tensor of these is, or nothing: complex numbers, text and times are none.
  std::optional<DType> dtype() const;
  /// Bytes that the byte order turns at once: 1 where it means nothing.
  std::size_t swap_unit() const;
  bool operator==(const ElementType&) const = default;
};

/// The type for tensors of `dtype`.
ElementType element_type(DType dtype);

}  // namespace stoker::formats
