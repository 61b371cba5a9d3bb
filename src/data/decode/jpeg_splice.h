// A smaller JPEG out of a part of another one, without decoding: where restart markers cut the image into
// rectangles, those that hold the wanted pixels are copied behind a header with a smaller size. The pixels
// are those of the whole image. Only this folder includes it. Thread-compatible: scratch memory is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/decode/image.h"

namespace stoker::data::codecs {

/// What the markers of a JPEG with restart intervals say. Offsets are into its bytes.
struct RestartLayout {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::size_t size_at = 0;       ///< of height and width in the frame header, two bytes each
  std::size_t scan_at = 0;       ///< of the first entropy-coded byte
  std::uint32_t cell_width = 0;  ///< pixels that one restart interval covers
  std::uint32_t cell_height = 0;
  std::uint32_t columns = 0;  ///< intervals beside each other
};

/// Nothing unless the image is one sequential Huffman scan whose restart intervals are rectangles: an
/// interval divides a row of MCUs, or is whole rows. Reads no entropy-coded byte.
std::optional<RestartLayout> restart_layout(std::span<const std::byte> jpeg);

class Splicer {
 public:
  /// The smallest JPEG with at least `wanted`, and which part it is; nothing when the restart markers are not
  /// as the header promises, or when it would be the whole image. Valid until the next call. REQUIRES:
  /// `wanted` lies in the image and is not empty.
  std::optional<std::span<const std::byte>> splice(std::span<const std::byte> jpeg,
                                                   const RestartLayout& layout, const Region& wanted,
                                                   Region& got);

 private:
  // The first `wanted` ones; false unless all markers up to there are as they should be.
  bool find_intervals(std::span<const std::byte> jpeg, const RestartLayout& layout, std::size_t wanted);
  void copy_interval(std::span<const std::byte> jpeg, std::size_t interval);

  std::vector<std::size_t> begins_;  // of each interval, and where the marker after the last begins, plus 2
  std::vector<std::byte> out_;
};

}  // namespace stoker::data::codecs
