// Thread-safe: no state.
#pragma once

#include <cstdint>

namespace stoker {

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the value. It must never
/// change, because the sample orders of existing datasets and runs depend on it.
/// https://prng.di.unimi.it/splitmix64.c
constexpr std::uint64_t splitmix64(std::uint64_t v) {
  v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9u;
  v = (v ^ v >> 27) * 0x94D049BB133111EBu;
  return v ^ v >> 31;
}
/// The increment of SplitMix64: 2^64 divided by the golden ratio.
inline constexpr std::uint64_t kSplitMix64Increment = 0x9E3779B97F4A7C15u;

}  // namespace stoker
