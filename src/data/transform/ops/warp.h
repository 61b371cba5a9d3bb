// Shearing, shifting and turning of images as Pillow's Image.transform(AFFINE, NEAREST) does it. Used by
// RandAugment. Thread-safe: no state.
#pragma once

#include <array>

#include "data/transform/canvas.h"

namespace stoker::data {

/// Where a pixel of the result comes from: (a x + b y + c, d x + e y + f).
using Affine = std::array<double, 6>;

/// As torchvision makes them: sheared by the tangent around the corner, shifted by whole pixels (to the right
/// and down), turned anticlockwise by degrees around the middle.
Affine sheared(double across, double down);
Affine shifted(double right, double down);
Affine turned(double degrees, std::uint32_t width, std::uint32_t height);

/// Writes `from`, warped, to `to`, which is made the same size; what lies outside is `fill`.
void warp(const Image& from, const Affine& affine, const Rgb& fill, Image& to);

}  // namespace stoker::data
