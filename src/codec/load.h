// Loads numbers from bytes. Thread-safe: no state.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

namespace stoker::codec {

static_assert(std::endian::native == std::endian::little, "every format here stores numbers little-endian");

/// The number at `offset`. REQUIRES: offset + sizeof(T) <= bytes.size().
template <typename T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace stoker::codec
