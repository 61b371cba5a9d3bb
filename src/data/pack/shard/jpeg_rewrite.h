// Turns JPEG files without loss: progressive to baseline, restart markers so that a part can be decoded by
// itself. The coefficients stay as they are, so every decoder gives the same pixels. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"

namespace stoker::data {

enum class RestartMarkers {
  none,
  some,  ///< every few blocks, so that each row of blocks is a whole number of intervals
};

/// Blocks (MCUs) from one restart marker to the next for rows of `blocks`: the divisor nearest to 4 that is
/// at most 8, else the whole row. REQUIRES: blocks > 0.
unsigned restart_interval(unsigned blocks);

/// A baseline file with optimised Huffman tables and all markers of the original (EXIF, ICC, comments).
/// Corrupt for a damaged or incomplete file; Invalid for a progressive one without all its scans, which would
/// look another way.
Result<std::vector<std::byte>> rewrite_jpeg(std::span<const std::byte> bytes, RestartMarkers markers);

}  // namespace stoker::data
