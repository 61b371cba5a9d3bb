// A tensor for rooms without libtorch: name, type, shape, bytes. Used by checkpoint and the trainer. A view:
// the creator keeps the memory alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

/// Element types with the names of safetensors (https://github.com/huggingface/safetensors).
enum class DType : std::uint8_t { boolean, u8, i8, i16, u16, f16, bf16, i32, u32, f32, f64, i64, u64 };

/// Bytes of one element.
constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::boolean:
    case DType::u8:
    case DType::i8:
      return 1;
    case DType::i16:
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::i32:
    case DType::u32:
    case DType::f32:
      return 4;
    case DType::f64:
    case DType::i64:
    case DType::u64:
      return 8;
  }
  return 0;
}

/// "F32", "BOOL", ... as in a safetensors header.
constexpr std::string_view to_text(DType type) {
  constexpr std::string_view kNames[] = {"BOOL", "U8",  "I8",  "I16", "U16", "F16", "BF16",
                                         "I32",  "U32", "F32", "F64", "I64", "U64"};
  return kNames[static_cast<std::size_t>(type)];
}

/// The type with that name, or nullopt.
constexpr std::optional<DType> dtype_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(DType::u64); ++i) {
    if (to_text(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

/// Sizes per dimension; empty for a scalar.
using Shape = std::vector<std::int64_t>;

/// A contiguous tensor in C order. `Byte` is std::byte for writing and const std::byte for reading.
template <typename Byte>
struct BasicTensorView {
  std::string name;  ///< fully qualified: "layer1.0.conv1.weight"
  DType dtype = DType::f32;
  Shape shape;
  std::span<Byte> data;  ///< elements x size_of(dtype) bytes

  operator BasicTensorView<const std::byte>() const
    requires(!std::is_const_v<Byte>)
  {
    return {name, dtype, shape, data};
  }
};
using TensorView = BasicTensorView<const std::byte>;
using MutableTensorView = BasicTensorView<std::byte>;

/// The product of the sizes; 1 for a scalar. REQUIRES: all sizes >= 0 and a product below 2^63.
inline std::int64_t element_count(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t size : shape) n *= size;
  return n;
}

}  // namespace stoker
