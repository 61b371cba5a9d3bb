// Changes of colour on 8-bit RGB in place, pixel for pixel what Pillow (and so torchvision on PIL images)
// makes of them. Used by the steps. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/decode/image.h"

namespace stoker::data {

using Pixels = std::span<std::uint8_t>;  ///< three bytes each

/// ImageEnhance.Brightness, Contrast and Color: 0 is black, grey or without colour, 1 changes nothing.
void change_brightness(Pixels rgb, float factor);
void change_contrast(Pixels rgb, float factor);
void change_saturation(Pixels rgb, float factor);
/// Turns the hue by `turns` of the colour circle, -0.5 to 0.5, as torchvision's adjust_hue.
void change_hue(Pixels rgb, double turns);
/// ImageEnhance.Sharpness: 0 is smoothed, 1 changes nothing. `copy` is scratch memory.
void change_sharpness(Image& image, float factor, std::vector<std::uint8_t>& copy);
/// convert("L"), in all three channels.
void to_grey(Pixels rgb);
/// ImageOps: keeps the upper `bits` of 8; turns bytes from `threshold` on into their opposite; stretches each
/// channel to 0..255; flattens each channel's histogram.
void posterize(Pixels rgb, int bits);
void solarize(Pixels rgb, double threshold);
void stretch_contrast(Pixels rgb);
void equalize(Pixels rgb);

}  // namespace stoker::data
