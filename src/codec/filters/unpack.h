// Decompression of Parquet pages with every codec but LZO. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "stoker/status.h"

namespace stoker::codec {

/// As Parquet numbers them.
enum class ParquetCodec : std::int32_t {
  none = 0,
  snappy = 1,
  gzip = 2,
  lzo = 3,
  brotli = 4,
  lz4 = 5,  ///< of Hadoop, with variants; see decompress_legacy_lz4()
  zstd = 6,
  lz4_raw = 7,
};

/// Fills all of `out`. Corrupt, starting with `subject`, if `packed` does not decompress to exactly that;
/// Invalid for an unsupported codec, Unavailable if its library is missing.
Status unpack_page(ParquetCodec codec, std::span<const std::byte> packed, std::span<std::byte> out,
                   std::string_view subject);

}  // namespace stoker::codec
