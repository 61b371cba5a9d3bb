// Boxes of arrays in memory: how many bytes they take, and copies of them between arrays of other strides.
// What readers and writers of chunked arrays share. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stoker::formats {

/// Sizes, positions or strides, one for each dimension.
using Extents = std::vector<std::uint64_t>;

/// Most dimensions that any array here may have: NumPy 1's own limit, and HDF5's.
constexpr std::size_t kMostDimensions = 32;

/// `unit` times all sizes, or nothing from 2^62 on.
std::optional<std::uint64_t> product(std::span<const std::uint64_t> sizes, std::uint64_t unit = 1);

/// Bytes from one element to the next along each dimension of a dense array in C order. REQUIRES: product()
/// of it.
Extents c_strides(std::span<const std::uint64_t> shape, std::uint64_t element_bytes);

/// One array in memory, as a copy sees it: where its first element lies and the strides in bytes.
template <typename Byte>
struct StridedView {
  Byte* data = nullptr;
  std::span<const std::uint64_t> strides;
};

/// Copies `size` elements of `element_bytes` each along each dimension. Strides may be in any order, for a
/// transpose; a source of strides 0 repeats one element. The two must not overlap.
void copy_box(StridedView<const std::byte> from, StridedView<std::byte> to,
              std::span<const std::uint64_t> size, std::size_t element_bytes);

/// Writes `element` all over `out`, whose size is a multiple of it.
void fill_with(std::span<const std::byte> element, std::span<std::byte> out);

}  // namespace stoker::formats
