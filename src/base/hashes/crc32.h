// CRC-32 as gzip, PNG, ZIP and Parquet have it (RFC 1952, section 8). Ours is crc32c() of base/hash.h.
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker {

/// crc32 of "123456789" is 0xCBF43926. `seed` is the value of what stood before.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t seed = 0);

}  // namespace stoker
