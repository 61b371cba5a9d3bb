// What the elements of stored arrays are: numbers, complex numbers, times, bytes and text of a fixed size,
// and values of different lengths. Shared by Zarr and HDF5. In memory every element has this machine's byte
// order. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/tensor_view.h"

namespace stoker::formats {

/// Whether numbers are stored with the low byte first.
enum class ByteOrder { little, big };

struct ElementType {
  /// `bytes` is text of a fixed size or anything that is only carried; `text` is UTF-32; `time` counts
  /// `time_unit`; `varying` are values of different lengths (`of`), which no element holds: its bytes are
  /// those of a reference.
  enum class Kind {
    boolean,
    signed_integer,
    unsigned_integer,
    floating,
    brain,
    complex,
    bytes,
    text,
    time,
    varying
  };
  Kind kind = Kind::floating;
  std::uint32_t bytes = 4;  ///< of an element
  char letter = 'f';      ///< as NumPy has it: V and S are both `bytes`, M and m both `time`; varying: kText,
                          ///< kBytes, kNumbers
  std::string time_unit;  ///< "ns", "25s": NumPy's spelling, without the brackets
  DType of = DType::u8;   ///< of lists of numbers of different lengths
  /// What of an element is its text, where that has a fixed size (S): all before the zeros or blanks that
  /// fill it up, or before its first zero.
  enum class TextEnd { before_zeros, before_blanks, at_zero };
  TextEnd text_end = TextEnd::before_zeros;

  static constexpr char kText = 'T';     ///< UTF-8
  static constexpr char kBytes = 'B';    ///< anything
  static constexpr char kNumbers = 'L';  ///< lists of `of`
  /// A reference to a value of another length than its neighbours'.
  static constexpr std::uint32_t kReferenceBytes = 16;
  /// REQUIRES: one of the three letters.
  static ElementType of_any_length(char letter, DType of = DType::u8) {
    return {.kind = Kind::varying, .bytes = kReferenceBytes, .letter = letter, .time_unit = {}, .of = of};
  }

  /// What a tensor of these is, or nothing: complex numbers, text and times are none.
  std::optional<DType> dtype() const;
  /// Bytes that the byte order turns at once: 1 where it means nothing.
  std::size_t swap_unit() const;
  bool operator==(const ElementType&) const = default;
};

/// As NumPy names it ("float32", "complex64", "datetime64[ns]"); "text of 5 bytes", "text of 5 characters",
/// "16 bytes", and "text", "bytes", "list of int64" where each has a length of its own. For people.
std::string described(const ElementType& type);

/// How many bytes of an element of `type` (S) are its text.
std::uint64_t length_of_text(const ElementType& type, std::span<const std::byte> element);

/// An element that is `text`, up to its first zero. What is no character becomes U+FFFD.
std::string text_of_utf32(std::span<const std::byte> element);

/// The type for tensors of `dtype`.
ElementType element_type(DType dtype);

}  // namespace stoker::formats
