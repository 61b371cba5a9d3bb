// What the scans of a progressive JPEG have told of its coefficients. Internal to what calls libjpeg.
// Thread-safe: no state.
#pragma once

#include <algorithm>
#include <cstdio>  // jpeglib.h uses FILE without including it
#include <span>

#include <jpeglib.h>

namespace stoker::data::codecs {

/// Whether a progressive file ends before all its coefficients are told to their last bit: libjpeg then
/// guesses them from the blocks around (jdcoefct.c, smoothing_ok). REQUIRES: its coefficients were read.
inline bool lacks_scans(const jpeg_decompress_struct& jpeg) {
  if (jpeg.progressive_mode == 0 || jpeg.coef_bits == nullptr) return false;
  // Their lowest known bit; -1 of those that no scan had.
  const auto is_known = [](int bit) { return bit == 0; };
  return std::any_of(jpeg.coef_bits, jpeg.coef_bits + jpeg.num_components, [&](const auto& component) {
    return !std::all_of(std::begin(component), std::end(component), is_known);
  });
}

}  // namespace stoker::data::codecs
