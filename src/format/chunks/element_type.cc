#include "format/chunks/element_type.h"

#include <array>

namespace stoker::formats {

namespace {

using Kind = ElementType::Kind;

Kind kind_of(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return Kind::boolean;
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
      return Kind::unsigned_integer;
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      return Kind::signed_integer;
    case DType::bf16:
      return Kind::brain;
    case DType::f16:
    case DType::f32:
    case DType::f64:
      return Kind::floating;
  }
  return Kind::floating;
}

char letter_of(Kind kind) {
  constexpr std::array kLetters = {'b', 'i', 'u', 'f', 'E', 'c', 'V', 'U', 'M'};
  return kLetters[static_cast<std::size_t>(kind)];
}

}  // namespace

std::optional<DType> ElementType::dtype() const {
  for (int i = 0; i <= static_cast<int>(DType::u64); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (kind_of(dtype) == kind && size_of(dtype) == bytes) return dtype;
  }
  return std::nullopt;
}

std::size_t ElementType::swap_unit() const {
  switch (kind) {
    case Kind::boolean:
    case Kind::bytes:
      return 1;
    case Kind::complex:
      return bytes / 2;
    case Kind::text:
      return 4;
    default:
      return bytes;
  }
}

ElementType element_type(DType dtype) {
  const Kind kind = kind_of(dtype);
  return {.kind = kind,
          .bytes = static_cast<std::uint32_t>(size_of(dtype)),
          .letter = letter_of(kind),
          .time_unit = {}};
}

}  // namespace stoker::formats
