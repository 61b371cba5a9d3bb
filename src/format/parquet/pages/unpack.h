// The pages of a Parquet file, unpacked: none, Snappy, gzip, zstd and LZ4_RAW. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace stoker::formats {

/// As Parquet numbers them.
enum class ParquetCodec : std::int32_t { none = 0, snappy = 1, gzip = 2, zstd = 6, lz4_raw = 7 };

/// Fills all of `out`. Corrupt, starting with `subject`, if `packed` does not give exactly that; Invalid for
/// another codec.
Status unpack_page(ParquetCodec codec, std::span<const std::byte> packed, std::span<std::byte> out,
                   std::string_view subject);

}  // namespace stoker::formats
