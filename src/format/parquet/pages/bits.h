// Numbers of a few bits each, one behind another, as Parquet packs them. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace stoker::formats {

/// The 8 bytes at `at` as a number, the lowest first; zeros follow behind the end. REQUIRES: at <=
/// bytes.size().
inline std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t word = 0;
  if (bytes.size() - at >= sizeof word) [[likely]]  // of a size that the compiler knows
    std::memcpy(&word, bytes.data() + at, sizeof word);
  else if (at < bytes.size())
    std::memcpy(&word, bytes.data() + at, bytes.size() - at);
  return word;
}

/// `width` bits (at most 32) from bit `bit` of `bytes` on, the lowest first. REQUIRES as word_at().
inline std::uint64_t bits_at(std::span<const std::byte> bytes, std::uint64_t bit, unsigned width) {
  return word_at(bytes, bit / 8) >> bit % 8 & ((std::uint64_t{1} << width) - 1);
}

// Each fills all of `out` with numbers of `width` bits from the first byte on, each with its lowest bit
// first; behind the end of `bytes` are zeros. REQUIRES: width <= the bits of an element.
void unpack_bits(std::span<const std::byte> bytes, unsigned width, std::span<std::uint8_t> out);
void unpack_bits(std::span<const std::byte> bytes, unsigned width, std::span<std::uint32_t> out);
void unpack_bits(std::span<const std::byte> bytes, unsigned width, std::span<std::uint64_t> out);

}  // namespace stoker::formats
