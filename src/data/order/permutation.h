// A random order of 0 to n - 1 in no memory: the i-th place is computed from i and a key. A Feistel network
// over pairs (a, b) with a x b at least n; places beyond n are sent through again. Not for secrets. Used by
// the orders of samples. Immutable, thread-safe.
#pragma once

#include <cstdint>

namespace stoker::data {

/// What makes one permutation another: any two numbers.
struct PermutationKey {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

/// The key of an epoch's order; orders made for different ends take different purposes.
PermutationKey permutation_key(std::uint64_t seed, std::uint64_t epoch, std::uint32_t purpose);

class Permutation {
 public:
  /// REQUIRES: 1 <= n < 2^62.
  Permutation(std::uint64_t n, const PermutationKey& key);

  std::uint64_t size() const { return n_; }
  /// REQUIRES: i < size().
  std::uint64_t at(std::uint64_t i) const {
    do {
      i = once(i);
    } while (i >= n_);
    return i;
  }

 private:
  std::uint64_t once(std::uint64_t i) const;

  std::uint64_t n_;
  std::uint64_t rows_;
  std::uint64_t columns_;
  PermutationKey key_;
};

}  // namespace stoker::data
