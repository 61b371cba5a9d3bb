// Checks that the scans of a progressive JPEG are complete. Internal to the callers of libjpeg. Thread-safe:
// no state.
#pragma once

#include <algorithm>
#include <cstdio>  // jpeglib.h uses FILE without including it
#include <span>

#include <jpeglib.h>

namespace stoker::image::codecs {

/// Whether a progressive file ends before its coefficients are known to their last bit. libjpeg then guesses
/// them from the surrounding blocks (jdcoefct.c, smoothing_ok). REQUIRES: its coefficients were read.
inline bool is_missing_scans(const jpeg_decompress_struct& jpeg) {
  if (jpeg.progressive_mode == 0 || jpeg.coef_bits == nullptr) return false;
  // The lowest known bit of each coefficient; -1 if no scan had it.
  const auto is_known = [](int bit) { return bit == 0; };
  return std::any_of(jpeg.coef_bits, jpeg.coef_bits + jpeg.num_components, [&](const auto& component) {
    return !std::all_of(std::begin(component), std::end(component), is_known);
  });
}

}  // namespace stoker::image::codecs
