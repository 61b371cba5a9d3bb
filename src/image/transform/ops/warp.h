// Shears, translates and rotates images like Pillow's Image.transform(AFFINE, NEAREST). Used by RandAugment.
// Thread-safe: no state.
#pragma once

#include <array>

#include "image/transform/canvas.h"

namespace stoker::image {

/// The source of a pixel: (a x + b y + c, d x + e y + f).
using Affine = std::array<double, 6>;

/// As in torchvision: sheared by the tangent around the corner, translated by whole pixels (right and down),
/// rotated anticlockwise by degrees around the centre.
Affine sheared(double across, double down);
Affine translated(double right, double down);
Affine rotated(double degrees, std::uint32_t width, std::uint32_t height);

/// Writes `from`, warped, to `to`, which gets the same size; the outside is `fill`.
void warp(const Image& from, const Affine& affine, const Rgb& fill, Image& to);

}  // namespace stoker::image
