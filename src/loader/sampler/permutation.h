// A random permutation of 0 to n - 1 without memory: the i-th element is computed from i and a key. A
// Feistel network over pairs (a, b) with a x b at least n; results beyond n go through it again. Not for
// cryptography. Immutable, thread-safe.
#pragma once

#include <cstdint>

namespace stoker::loader {

/// Selects the permutation: any two numbers.
struct PermutationKey {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

/// The key of an epoch's order. Orders for different purposes differ.
PermutationKey permutation_key(std::uint64_t seed, std::uint64_t epoch, std::uint32_t purpose);

class Permutation {
 public:
  /// REQUIRES: 1 <= n < 2^62.
  Permutation(std::uint64_t n, const PermutationKey& key);

  std::uint64_t size() const { return n_; }
  /// REQUIRES: i < size().
  std::uint64_t at(std::uint64_t i) const {
    do {
      i = permute_once(i);
    } while (i >= n_);
    return i;
  }

 private:
  std::uint64_t permute_once(std::uint64_t i) const;

  std::uint64_t n_;
  std::uint64_t rows_;
  std::uint64_t columns_;
  PermutationKey key_;
};

}  // namespace stoker::loader
