// Random numbers without state to save: the n-th number is a function of (seed, epoch, sample, n), the same
// for any thread, rank and attempt. Philox4x32-10 (Salmon et al., SC 2011): the key is the seed, the counter
// (sample low, sample high, epoch, block of four). A PhiloxStream belongs to one thread.
#pragma once

#include <array>
#include <cstdint>

namespace stoker::image {

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

/// Seed, epoch and sample: everything that randomness may depend on.
struct SampleKey {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;  ///< only its low 32 bits are used
  std::uint64_t sample = 0;
};

/// The random numbers of one key, in sequence.
class PhiloxStream {
 public:
  explicit PhiloxStream(const SampleKey& sample_key)
      : key_{low(sample_key.seed), high(sample_key.seed)},
        counter_{low(sample_key.sample), high(sample_key.sample), low(sample_key.epoch), 0} {}

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

}  // namespace stoker::image
