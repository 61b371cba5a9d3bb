// Thread-safe: no state.
#pragma once

#include <cstdint>

namespace stoker::data {

/// The finaliser of SplitMix64: every bit of the result depends on every bit of the value. The same for ever:
/// orders of existing datasets and runs were made with it. https://prng.di.unimi.it/splitmix64.c
constexpr std::uint64_t mix(std::uint64_t v) {
  v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9u;
  v = (v ^ v >> 27) * 0x94D049BB133111EBu;
  return v ^ v >> 31;
}
/// What SplitMix64 adds between two values: 2^64 divided by the golden ratio.
inline constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;

}  // namespace stoker::data
