// Renders a .npy array as a small HTML picture. Used by pages that show samples. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "stoker/status.h"

namespace stoker::inspect {

/// Side of the square that encloses a picture.
inline constexpr std::uint32_t kArraySide = 144;

struct ArrayPicture {
  std::string html;     ///< needs kArrayStyle
  std::string caption;  ///< type, shape, range, NaN and infinite counts: plain text
};

/// A few numbers or a list of integers as text; other vectors as bars or a line; pixels (uint8, height x
/// width x 3 or 1, or channels first) as an image; tables as a colour map, of more dimensions the first
/// table. Fails like read_npy().
Result<ArrayPicture> render_array(std::span<const std::byte> npy);

/// Its style sheet, for light and dark pages.
extern const std::string_view kArrayStyle;

}  // namespace stoker::inspect
