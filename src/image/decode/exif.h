// The orientation that a camera stores in EXIF (CIPA DC-008),
// from untrusted bytes of a JPEG, PNG or WebP file. Used by lint. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>

namespace stoker::image {

/// 1 to 8 as in the tag Orientation: 1 is upright, 3, 6 and 8 are rotated, 2, 4, 5 and 7 also mirrored. 1 if
/// the file has no such tag or an invalid one.
unsigned exif_orientation(std::span<const std::byte> file);

}  // namespace stoker::image
