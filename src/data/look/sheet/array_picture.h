// Numbers as a person sees them at a glance: an array of a .npy file as a small picture in HTML. Used by
// pages that show samples. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace stoker::data {

/// Side of the square that a picture fits in.
inline constexpr std::uint32_t kArraySide = 144;

struct ArrayPicture {
  std::string html;     ///< needs kArrayStyle
  std::string caption;  ///< type, shape, least and most, what is no number: plain text
};

/// A number or a few, and lists of whole numbers, as text; other vectors as bars or a line, pixels (uint8,
/// height x width x 3 or 1, or 3 or 1 before them) as an image, tables of numbers as a map of colours, of
/// more dimensions the first table. Fails as read_npy() does.
Result<ArrayPicture> picture_of_array(std::span<const std::byte> npy);

/// Its style sheet, for light and dark pages.
extern const std::string_view kArrayStyle;

}  // namespace stoker::data
