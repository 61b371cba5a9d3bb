// The pages of a Parquet file, unpacked by every codec but LZO. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace stoker::formats {

/// As Parquet numbers them.
enum class ParquetCodec : std::int32_t {
  none = 0,
  snappy = 1,
  gzip = 2,
  lzo = 3,
  brotli = 4,
  lz4 = 5,  ///< of Hadoop, and what others took for it
  zstd = 6,
  lz4_raw = 7,
};

/// Fills all of `out`. Corrupt, starting with `subject`, if `packed` does not give exactly that; Invalid for
/// another codec, Unavailable where its library is not there.
Status unpack_page(ParquetCodec codec, std::span<const std::byte> packed, std::span<std::byte> out,
                   std::string_view subject);

}  // namespace stoker::formats
