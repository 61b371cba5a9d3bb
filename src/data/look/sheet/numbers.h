// The numbers of an array, as pictures of them are drawn. Used by array_picture. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/tensor_view.h"

namespace stoker::data {

/// Elements in C order, somewhere in memory.
struct Numbers {
  DType type = DType::f32;
  std::span<const std::byte> bytes;

  std::size_t size() const { return bytes.size() / size_of(type); }
  double operator[](std::size_t i) const;
  /// Its digits, exactly.
  std::string text(std::size_t i) const;
};

/// Between which values they lie.
struct Spread {
  double least = 0;  ///< of those that are finite
  double most = 0;
  std::uint64_t finite = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;

  /// Where between least and most a value lies: 0 to 1; one half where they are equal. REQUIRES: it is
  /// finite.
  double share(double value) const;
};
Spread spread_of(const Numbers& numbers);

bool is_whole(DType type);

}  // namespace stoker::data
