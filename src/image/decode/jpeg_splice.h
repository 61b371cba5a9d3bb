// Makes a smaller JPEG from a part of a JPEG, without decoding. If restart markers cut the image into
// rectangles, the rectangles with the wanted pixels are copied behind a header with a smaller size. The
// pixels are the same as in the whole image. Only this folder includes it. Thread-compatible: scratch memory
// is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "image/decode/image.h"

namespace stoker::image::codecs {

/// The geometry of a JPEG with restart intervals. Offsets are into its bytes.
struct RestartLayout {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::size_t size_offset = 0;   ///< of height and width in the frame header, two bytes each
  std::size_t scan_offset = 0;   ///< of the first entropy-coded byte
  std::uint32_t cell_width = 0;  ///< pixels that one restart interval covers
  std::uint32_t cell_height = 0;
  std::uint32_t columns = 0;  ///< intervals per row
};

/// Nothing unless the image is one sequential Huffman scan whose restart intervals are rectangles: an
/// interval divides a row of MCUs, or is whole rows. Reads no entropy-coded byte.
std::optional<RestartLayout> restart_layout(std::span<const std::byte> jpeg);

class Splicer {
 public:
  /// The smallest JPEG with at least `wanted`, and its region in `got`. Nothing when the restart markers
  /// contradict the header, or the result would be the whole image. Valid until the next call. REQUIRES:
  /// `wanted` is inside the image and not empty.
  std::optional<std::span<const std::byte>> splice(std::span<const std::byte> jpeg,
                                                   const RestartLayout& layout, const ImageRegion& wanted,
                                                   ImageRegion& got);

 private:
  // Finds the first `wanted` intervals; false unless all markers up to there are correct.
  bool find_intervals(std::span<const std::byte> jpeg, const RestartLayout& layout, std::size_t wanted);
  void copy_interval(std::span<const std::byte> jpeg, std::size_t interval);

  std::vector<std::size_t> begins_;  // start of each interval, and the end of the marker after the last
  std::vector<std::byte> out_;
};

}  // namespace stoker::image::codecs
