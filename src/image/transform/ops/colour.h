// Colour operations on 8-bit RGB in place, pixel for pixel like Pillow (and so torchvision on PIL images).
// Used by the operations. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "image/decode/image.h"

namespace stoker::image {

using Pixels = std::span<std::uint8_t>;  ///< three bytes each

/// ImageEnhance.Brightness, Contrast and Color: 0 is black, grey or without colour, 1 changes nothing.
void adjust_brightness(Pixels rgb, float factor);
void adjust_contrast(Pixels rgb, float factor);
void adjust_saturation(Pixels rgb, float factor);
/// Rotates the hue by `turns` of the colour circle, -0.5 to 0.5, like torchvision's adjust_hue.
void adjust_hue(Pixels rgb, double turns);
/// ImageEnhance.Sharpness: 0 is smoothed, 1 changes nothing. `copy` is scratch memory.
void adjust_sharpness(Image& image, float factor, std::vector<std::uint8_t>& copy);
/// convert("L"), in all three channels.
void to_grayscale(Pixels rgb);
/// ImageOps: keeps the upper `bits` of 8; inverts bytes from `threshold` on; stretches each channel to
/// 0..255; equalizes each channel's histogram.
void posterize(Pixels rgb, int bits);
void solarize(Pixels rgb, double threshold);
void autocontrast(Pixels rgb);
void equalize(Pixels rgb);

}  // namespace stoker::image
