// Boxes of arrays in memory: their size in bytes, and copies between arrays with different strides. Shared by
// readers and writers of chunked arrays. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stoker::codec {

/// Sizes, positions or strides, one for each dimension.
using Extents = std::vector<std::uint64_t>;

/// Limit on the dimensions of any array: that of NumPy 1 and of HDF5.
constexpr std::size_t kMaxDimensions = 32;

/// For messages: "20 x 3"; "" without dimensions.
std::string shape_text(const Extents& shape);

/// `unit` times all sizes; nullopt from 2^62 on.
std::optional<std::uint64_t> product(std::span<const std::uint64_t> sizes, std::uint64_t unit = 1);

/// Bytes from one element to the next along each dimension of a dense array in C order. REQUIRES: product()
/// of it.
Extents c_strides(std::span<const std::uint64_t> shape, std::uint64_t element_bytes);

/// An array in memory for a copy: its first element and the strides in bytes.
template <typename Byte>
struct StridedView {
  Byte* data = nullptr;
  std::span<const std::uint64_t> strides;
};

/// Copies `size` elements of `element_bytes` each along each dimension. Strides may be in any order, for a
/// transpose; a source of strides 0 repeats one element. The two must not overlap.
void copy_box(StridedView<const std::byte> from, StridedView<std::byte> to,
              std::span<const std::uint64_t> size, std::size_t element_bytes);

/// Fills `out` with copies of `element`. REQUIRES: the size of `out` is a multiple of it.
void fill_with(std::span<const std::byte> element, std::span<std::byte> out);

/// The index of element `at` of a grid with these `counts`, in C order. REQUIRES: as many of each.
std::uint64_t linear_index(std::span<const std::uint64_t> at, std::span<const std::uint64_t> counts);

}  // namespace stoker::codec
