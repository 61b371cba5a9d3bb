// The numbers of an array, for drawing. Used by render_array. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "stoker/tensor_view.h"

namespace stoker::inspect {

/// Elements in C order.
struct Numbers {
  DType type = DType::f32;
  std::span<const std::byte> bytes;

  std::size_t size() const { return bytes.size() / size_of(type); }
  double operator[](std::size_t i) const;
  /// Exact decimal text.
  std::string text(std::size_t i) const;
};

/// Range of values.
struct ValueRange {
  double least = 0;  ///< of the finite values
  double most = 0;
  std::uint64_t finite = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;

  /// Position of a value in the range: 0 to 1; one half if the range is empty. REQUIRES: a finite value.
  double normalize(double value) const;
};
ValueRange value_range_of(const Numbers& numbers);

bool is_whole(DType type);

}  // namespace stoker::inspect
