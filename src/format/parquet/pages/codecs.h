// Codecs of Parquet's pages that nothing else here has. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/status.h"

namespace stoker::formats {

/// Fills all of `out`; false where `packed` does not give exactly that. What old writers called LZ4: Hadoop's
/// blocks with their sizes before them, or one bare block, or the frame that the program lz4 writes. Which of
/// them it is only shows when it is read.
bool unlz4_of_old(std::span<const std::byte> packed, std::span<std::byte> out);

/// By libbrotlidec, which is loaded when it is first needed. Corrupt, beginning with `subject`, where
/// `packed` does not give exactly `out`; Unavailable where the library is not there.
Status unbrotli(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject);

}  // namespace stoker::formats
