// Byte counts as text: "64GB", "4MiB". Thread-safe: no state.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/status.h"

namespace stoker {

/// A number of bytes. Never negative.
struct ByteCount {
  std::uint64_t value = 0;

  auto operator<=>(const ByteCount&) const = default;
  ByteCount operator+(ByteCount other) const { return {value + other.value}; }
};

constexpr ByteCount operator""_KiB(unsigned long long n) { return {n << 10}; }
constexpr ByteCount operator""_MiB(unsigned long long n) { return {n << 20}; }
constexpr ByteCount operator""_GiB(unsigned long long n) { return {n << 30}; }

/// Parses "512B", "64GB" (10^9), "4MiB" (2^20), "1.5TB". A unit is required. Errors: "'64' has no unit (write
/// 64GB, 64MiB, ...)" or "'x' is not a byte count (such as 64GB or 4MiB)".
Result<ByteCount> parse_bytes(std::string_view text);
/// Exact, and parse_bytes() reads it back: uses the largest unit, binary or decimal, that divides it: "64GB",
/// "4MiB", "1025B".
std::string to_text(ByteCount bytes);
/// Rounded to three digits for display: "921 B", "5.41 GB" (decimal units).
std::string rounded(ByteCount bytes);

}  // namespace stoker
