// Element types of stored arrays: numbers, complex numbers, times, bytes and text of a fixed size, and values
// of variable length. Shared by Zarr and HDF5. In memory every element has this machine's byte order.
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "stoker/tensor_view.h"

namespace stoker::codec {

/// Whether the low byte of a number is stored first.
enum class ByteOrder { little, big };

struct ElementType {
  /// `bytes` is text of a fixed size or opaque data; `text` is UTF-32; `time` counts `time_unit`;
  /// `variable_length` elements are references to values of type `item`.
  enum class Kind {
    boolean,
    signed_integer,
    unsigned_integer,
    floating,
    bfloat,
    complex,
    bytes,
    text,
    time,
    variable_length
  };
  Kind kind = Kind::floating;
  std::uint32_t bytes = 4;  ///< of an element
  char letter = 'f';  ///< as in NumPy: V and S are both `bytes`, M and m both `time`; variable length: kText,
                      ///< kBytes, kNumbers
  std::string time_unit;   ///< "ns", "25s": NumPy's spelling, without the brackets
  DType item = DType::u8;  ///< of variable-length lists of numbers
  /// Where the text of a fixed-size element (S) ends: before its padding of zeros or blanks, or at its first
  /// zero.
  enum class TextEnd { before_zeros, before_blanks, at_zero };
  TextEnd text_end = TextEnd::before_zeros;

  static constexpr char kText = 'T';     ///< UTF-8
  static constexpr char kBytes = 'B';    ///< anything
  static constexpr char kNumbers = 'L';  ///< lists of `item`
  /// A reference to a value of variable length.
  static constexpr std::uint32_t kReferenceBytes = 16;
  /// REQUIRES: one of the three letters.
  static ElementType variable_length_of(char letter, DType item = DType::u8) {
    return {.kind = Kind::variable_length,
            .bytes = kReferenceBytes,
            .letter = letter,
            .time_unit = {},
            .item = item};
  }

  /// The tensor type of these elements; nullopt for complex numbers, text and times.
  std::optional<DType> dtype() const;
  /// Bytes that are swapped as a unit when the byte order changes: 1 if it does not matter.
  std::size_t swap_unit() const;
  bool operator==(const ElementType&) const = default;
};

/// For users: NumPy's name ("float32", "complex64", "datetime64[ns]"), or "text of 5 bytes", "text of 5
/// characters", "16 bytes", and for variable length "text", "bytes", "list of int64".
std::string type_name(const ElementType& type);

/// The length of the text in an element of `type` (S).
std::uint64_t text_length(const ElementType& type, std::span<const std::byte> element);

/// The UTF-8 text of an element of kind `text`, up to its first zero. Invalid characters become U+FFFD.
std::string utf32_to_utf8(std::span<const std::byte> element);

/// The type for tensors of `dtype`.
ElementType element_type(DType dtype);

}  // namespace stoker::codec
