// A set of piece numbers with fast search in ascending order. Thread-compatible.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace stoker::stage {

class PieceSet {
 public:
  explicit PieceSet(std::uint32_t size = 0) : words_((std::size_t{size} + 63) / 64) {}

  bool contains(std::uint32_t piece) const { return (words_[piece / 64] >> (piece % 64) & 1) != 0; }
  void insert(std::uint32_t piece) { words_[piece / 64] |= std::uint64_t{1} << (piece % 64); }
  void erase(std::uint32_t piece) { words_[piece / 64] &= ~(std::uint64_t{1} << (piece % 64)); }

  /// The first piece from `begin` on for which `word(i)`, 64 bits for pieces 64 i and following, has a bit;
  /// kNone without one.
  template <typename Word>
  static std::uint32_t find(std::uint32_t begin, std::size_t words, const Word& word) {
    std::size_t i = begin / 64;
    if (i >= words) return kNone;
    std::uint64_t bits = word(i) & (~std::uint64_t{0} << (begin % 64));
    while (bits == 0) {
      if (++i == words) return kNone;
      bits = word(i);
    }
    return static_cast<std::uint32_t>(i * 64) + static_cast<std::uint32_t>(std::countr_zero(bits));
  }
  /// The first member from `begin` on; kNone without one.
  std::uint32_t first_from(std::uint32_t begin) const {
    return find(begin, words_.size(), [this](std::size_t i) { return words_[i]; });
  }
  /// The first from `begin` on that is in both sets of equal size.
  static std::uint32_t first_in_both(std::uint32_t begin, const PieceSet& a, const PieceSet& b) {
    return find(begin, a.words_.size(), [&](std::size_t i) { return a.words_[i] & b.words_[i]; });
  }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace stoker::stage
