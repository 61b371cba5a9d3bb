// Rewrites JPEG files without loss: progressive to baseline, and restart markers so that parts can be
// decoded separately. The coefficients stay the same, so every decoder returns the same pixels. Thread-safe:
// no state.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stoker/status.h"

namespace stoker::image {

enum class RestartMarkers {
  none,
  some,  ///< every few blocks, so that each row of blocks is a whole number of intervals
};

/// Blocks (MCUs) from one restart marker to the next for rows of `blocks`: the divisor nearest to 4 that is
/// at most 8, else the whole row. REQUIRES: blocks > 0.
unsigned restart_interval(unsigned blocks);

/// A baseline file with optimised Huffman tables and all markers of the original (EXIF, ICC, comments).
/// Corrupt for a damaged or incomplete file. Invalid for a progressive file without all its scans, which
/// would look different.
Result<std::vector<std::byte>> rewrite_jpeg(std::span<const std::byte> bytes, RestartMarkers markers);

}  // namespace stoker::image
