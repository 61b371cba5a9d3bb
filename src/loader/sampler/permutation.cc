#include "loader/sampler/permutation.h"

#include <cmath>

#include "base/hashes/splitmix64.h"
#include "image/transform/philox.h"

namespace stoker::loader {
namespace {

constexpr int kRounds = 6;

// 0 to n - 1 out of 32 random bits. REQUIRES: n < 2^32.
std::uint64_t below(std::uint64_t n, std::uint64_t random) { return (random >> 32) * n >> 32; }

}  // namespace

PermutationKey permutation_key(std::uint64_t seed, std::uint64_t epoch, std::uint32_t purpose) {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const image::PhiloxBlock block =
      image::philox4x32({low(epoch), low(epoch >> 32), purpose, 0x6F726465u}, {low(seed), low(seed >> 32)});
  return {std::uint64_t{block[0]} << 32 | block[1], std::uint64_t{block[2]} << 32 | block[3]};
}

Permutation::Permutation(std::uint64_t n, const PermutationKey& key)
    : n_(n), rows_(static_cast<std::uint64_t>(std::sqrt(static_cast<double>(n)))), columns_(0), key_(key) {
  if (rows_ < 1) rows_ = 1;
  columns_ = (n + rows_ - 1) / rows_;
}

std::uint64_t Permutation::permute_once(std::uint64_t i) const {
  std::uint64_t row = i / columns_;
  std::uint64_t column = i % columns_;
  std::uint64_t key = key_.first;
  for (int round = 0; round < kRounds; ++round, key += key_.second | 1) {
    row += below(rows_, splitmix64(column + key));
    if (row >= rows_) row -= rows_;
    column += below(columns_, splitmix64(row + ~key));
    if (column >= columns_) column -= columns_;
  }
  return row * columns_ + column;
}

}  // namespace stoker::loader
