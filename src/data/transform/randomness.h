// Random numbers without state to save: the n-th number is a function of (seed, epoch, sample, n), so that
// any thread on any rank in any attempt gets the same. Philox4x32-10 (Salmon et al., SC 2011): the key is the
// seed, the counter (sample low, sample high, epoch, block of four). A Dice belongs to one thread.
#pragma once

#include <array>
#include <cstdint>

namespace stoker::data {

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Ten rounds.
constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// Which sample in which epoch of which training: all that randomness may depend on.
struct Occasion {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;  ///< its low 32 bits count
  std::uint64_t sample = 0;
};

/// The numbers of one occasion, one after the other.
class Dice {
 public:
  explicit Dice(const Occasion& occasion)
      : key_{low(occasion.seed), high(occasion.seed)},
        counter_{low(occasion.sample), high(occasion.sample), low(occasion.epoch), 0} {}

  std::uint32_t next() {
    if (used_ == 4) {
      block_ = philox4x32(counter_, key_);
      ++counter_[3];
      used_ = 0;
    }
    return block_[used_++];
  }
  /// 0 to n - 1. REQUIRES: n >= 1.
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>((std::uint64_t{next()} * n) >> 32);
  }
  /// At least 0 and below 1, a multiple of 2^-32.
  double uniform() { return next() * 0x1p-32; }

 private:
  static std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
  static std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

  std::array<std::uint32_t, 2> key_;
  PhiloxBlock counter_;
  PhiloxBlock block_{};
  unsigned used_ = 4;
};

}  // namespace stoker::data
