// Random numbers of one trial: a function of the study's seed and the trial's number. Belongs to one thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "base/hashes/splitmix64.h"

namespace stoker::sweep {

/// A SplitMix64 sequence.
class TrialRandom {
 public:
  TrialRandom(std::uint64_t seed, std::uint64_t number)
      : state_(splitmix64(splitmix64(seed + kSplitMix64Increment) + number)) {}

  std::uint64_t next() { return splitmix64(state_ += kSplitMix64Increment); }
  /// At least 0 and below 1, a multiple of 2^-53.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// 0 to n - 1. REQUIRES: n >= 1. For small n: the bias is n / 2^53.
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>(uniform() * static_cast<double>(n));
  }
  /// Standard normal, by Box and Muller.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace stoker::sweep
