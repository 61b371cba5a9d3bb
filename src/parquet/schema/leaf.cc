#include "parquet/schema/leaf.h"

#include <algorithm>

namespace stoker::parquet {

using Type = ParquetLeaf::Type;

std::size_t byte_width(Type type) {
  switch (type) {
    case Type::boolean:
    case Type::int8:
    case Type::uint8:
      return 1;
    case Type::int16:
    case Type::uint16:
    case Type::float16:
      return 2;
    case Type::int32:
    case Type::uint32:
    case Type::float32:
      return 4;
    case Type::int64:
    case Type::uint64:
    case Type::float64:
      return 8;
    case Type::bytes:
    case Type::other:
      return 0;
  }
  return 0;
}

std::string_view to_text(Type type) {
  switch (type) {
    case Type::boolean:
      return "boolean";
    case Type::int8:
      return "int8";
    case Type::uint8:
      return "uint8";
    case Type::int16:
      return "int16";
    case Type::uint16:
      return "uint16";
    case Type::int32:
      return "int32";
    case Type::uint32:
      return "uint32";
    case Type::int64:
      return "int64";
    case Type::uint64:
      return "uint64";
    case Type::float16:
      return "float16";
    case Type::float32:
      return "float32";
    case Type::float64:
      return "float64";
    case Type::bytes:
      return "bytes";
    case Type::other:
      return "other";
  }
  return "other";
}

void ParquetValues::clear() {
  rows = 0;
  slots = 0;
  numbers.clear();
  texts.clear();
  present.clear();
  for (List& list : lists) {
    list.offsets.clear();
    list.present.clear();
  }
}

bool ParquetValues::has_list_sizes(std::span<const std::uint64_t> sizes) const {
  for (std::size_t level = 0; level < lists.size(); ++level) {
    const List& list = lists[level];
    if (std::find(list.present.begin(), list.present.end(), 0) != list.present.end()) return false;
    for (std::size_t i = 0; i + 1 < list.offsets.size(); ++i)
      if (list.offsets[i + 1] - list.offsets[i] != sizes[level]) return false;
  }
  return true;
}

std::optional<DType> number_type(const ParquetLeaf& leaf) {
  switch (leaf.type) {
    case Type::boolean:
      return DType::boolean;
    case Type::int8:
      return DType::i8;
    case Type::uint8:
      return DType::u8;
    case Type::int16:
      return DType::i16;
    case Type::uint16:
      return DType::u16;
    case Type::int32:
      return DType::i32;
    case Type::uint32:
      return DType::u32;
    case Type::int64:
      return DType::i64;
    case Type::uint64:
      return DType::u64;
    case Type::float16:
      return DType::f16;
    case Type::float32:
      return DType::f32;
    case Type::float64:
      return DType::f64;
    case Type::bytes:
    case Type::other:
      break;
  }
  return std::nullopt;
}

bool is_integer(Type type) { return type >= Type::int8 && type <= Type::uint64; }

}  // namespace stoker::parquet
