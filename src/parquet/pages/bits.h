// Parquet's bit-packed numbers. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace stoker::parquet {

/// The 8 bytes at `at` as a little-endian number, with zeros beyond the end. REQUIRES: at <= bytes.size().
inline std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t word = 0;
  if (bytes.size() - at >= sizeof word) [[likely]]  // of a constant size
    std::memcpy(&word, bytes.data() + at, sizeof word);
  else if (at < bytes.size())
    std::memcpy(&word, bytes.data() + at, bytes.size() - at);
  return word;
}

/// `width` bits (at most 32) from bit `bit` of `bytes` on, the lowest first. REQUIRES as word_at().
inline std::uint64_t bits_at(std::span<const std::byte> bytes, std::uint64_t bit, unsigned width) {
  return word_at(bytes, bit / 8) >> bit % 8 & ((std::uint64_t{1} << width) - 1);
}

// Fill `out` with numbers of `width` bits from the first byte on, lowest bit first, with zeros beyond the end
// of `bytes`. REQUIRES: width <= the bits of an element.
void unpack_bits(std::span<const std::byte> bytes, unsigned width, std::span<std::uint8_t> out);
void unpack_bits(std::span<const std::byte> bytes, unsigned width, std::span<std::uint32_t> out);
void unpack_bits(std::span<const std::byte> bytes, unsigned width, std::span<std::uint64_t> out);

}  // namespace stoker::parquet
