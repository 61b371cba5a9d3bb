// Codecs that only Parquet pages use. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "stoker/status.h"

namespace stoker::codec {

/// Decompresses what early Parquet writers called LZ4: Hadoop's blocks with sizes, a bare block, or a frame
/// of the lz4 program. The data itself does not name the variant, so each is attempted. False if `packed`
/// does not decompress to exactly `out`.
bool decompress_legacy_lz4(std::span<const std::byte> packed, std::span<std::byte> out);

/// Uses libbrotlidec, loaded on first use. Corrupt, beginning with `subject`, if `packed` does not decompress
/// to exactly `out`; Unavailable if the library is missing.
Status decompress_brotli(std::span<const std::byte> packed, std::span<std::byte> out,
                         std::string_view subject);

}  // namespace stoker::codec
