#include <cstring>

#include "format/hdf5/dataset.h"

namespace stoker::formats {

namespace {

constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 32;

// Numbers of any width as 64 bits; a negative one becomes too large.
std::vector<std::uint64_t> widened(std::span<const std::byte> bytes, const ElementType& type) {
  std::vector<std::uint64_t> numbers(bytes.size() / type.bytes);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::span<const std::byte> element = bytes.subspan(i * type.bytes, type.bytes);
    const bool is_negative =
        type.kind == ElementType::Kind::signed_integer && (element.back() & std::byte{128}) != std::byte{0};
    if (is_negative) numbers[i] = ~std::uint64_t{0};
    std::memcpy(&numbers[i], element.data(), element.size());
  }
  return numbers;
}

}  // namespace

Result<Hdf5Ragged> Hdf5Ragged::open(std::unique_ptr<Hdf5Dataset> values, const Hdf5Dataset& index) {
  using Kind = ElementType::Kind;
  const ElementType& type = index.type();
  if (index.shape().size() != 1 ||
      (type.kind != Kind::signed_integer && type.kind != Kind::unsigned_integer)) {
    return invalid("index '{}': is no list of whole numbers", index.name());
  }
  if (index.rows() == 0 || index.rows() > kMostSamples) {
    return invalid("index '{}': has {} numbers (1 to 4 294 967 296 are read)", index.name(), index.rows());
  }
  std::vector<std::byte> bytes(index.rows() * type.bytes);
  RETURN_IF_ERROR(index.read_rows(0, index.rows(), bytes));
  std::vector<std::uint64_t> begin = widened(bytes, type);
  for (std::size_t i = 0; i < begin.size(); ++i) {
    if (i > 0 && begin[i] < begin[i - 1]) {
      return corrupt("index '{}': number {} is {}, less than the {} before it", index.name(), i, begin[i],
                     begin[i - 1]);
    }
    if (begin[i] > values->rows()) {
      return corrupt("index '{}': number {} is {}, '{}' has {} rows", index.name(), i, begin[i],
                     values->name(), values->rows());
    }
  }
  return Hdf5Ragged(std::move(values), std::move(begin));
}

}  // namespace stoker::formats
