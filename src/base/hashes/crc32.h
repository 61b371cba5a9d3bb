// CRC-32 of gzip, PNG, ZIP and Parquet (RFC 1952, section 8). Stoker's own formats use crc32c() of
// base/hash.h. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker {

/// crc32 of "123456789" is 0xCBF43926. `seed` is the CRC of the preceding bytes.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t seed = 0);

}  // namespace stoker
