#include "image/decode/jpeg_splice.h"

#include <algorithm>
#include <cstring>

namespace stoker::image::codecs {
namespace {

unsigned byte_at(std::span<const std::byte> bytes, std::size_t i) { return static_cast<unsigned>(bytes[i]); }
unsigned word_at(std::span<const std::byte> bytes, std::size_t i) {
  return byte_at(bytes, i) << 8 | byte_at(bytes, i + 1);
}
void put_word(std::vector<std::byte>& bytes, std::size_t i, std::uint32_t value) {
  bytes[i] = static_cast<std::byte>(value >> 8);
  bytes[i + 1] = static_cast<std::byte>(value);
}

constexpr unsigned kStart = 0xD8, kEnd = 0xD9, kScan = 0xDA, kRestartEvery = 0xDD, kRestart0 = 0xD0;

// The header up to the scan.
struct JpegHeader {
  RestartLayout layout;
  unsigned components = 0;
  unsigned mcu_width = 8;
  unsigned mcu_height = 8;
  unsigned interval = 0;  // in MCUs
};

// `segment` follows the length of the marker. Only 8-bit sequential Huffman frames are supported.
bool read_frame(std::span<const std::byte> segment, std::size_t at, JpegHeader& header) {
  if (segment.size() < 6 || byte_at(segment, 0) != 8 || header.components != 0) return false;
  header.layout.height = word_at(segment, 1);
  header.layout.width = word_at(segment, 3);
  header.layout.size_offset = at + 1;
  header.components = byte_at(segment, 5);
  if (header.components < 1 || header.components > 4 || segment.size() < 6 + 3 * header.components)
    return false;
  if (header.layout.width == 0 || header.layout.height == 0) return false;
  // A scan of one component is not interleaved: its MCU is one block, whatever the sampling factors.
  for (unsigned c = 0; c < header.components && header.components > 1; ++c) {
    const unsigned sampling = byte_at(segment, 7 + 3 * c);
    header.mcu_width = std::max(header.mcu_width, 8 * (sampling >> 4));
    header.mcu_height = std::max(header.mcu_height, 8 * (sampling & 15));
  }
  return header.mcu_width <= 32 && header.mcu_height <= 32;
}

bool compute_cells(JpegHeader& header) {
  if (header.interval == 0 || header.components == 0) return false;
  RestartLayout& layout = header.layout;
  const unsigned per_row = (layout.width + header.mcu_width - 1) / header.mcu_width;
  if (per_row % header.interval == 0) {
    layout.columns = per_row / header.interval;
    layout.cell_width = header.interval * header.mcu_width;
    layout.cell_height = header.mcu_height;
    return true;
  }
  if (header.interval % per_row != 0) return false;
  layout.columns = 1;
  layout.cell_width = per_row * header.mcu_width;
  layout.cell_height = header.interval / per_row * header.mcu_height;
  return true;
}

std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }

}  // namespace

std::optional<RestartLayout> restart_layout(std::span<const std::byte> jpeg) {
  if (jpeg.size() < 4 || byte_at(jpeg, 0) != 0xFF || byte_at(jpeg, 1) != kStart) return std::nullopt;
  JpegHeader header;
  std::size_t at = 2;
  for (;;) {
    if (at + 4 > jpeg.size() || byte_at(jpeg, at) != 0xFF) return std::nullopt;
    const unsigned marker = byte_at(jpeg, at + 1);
    const std::size_t length = word_at(jpeg, at + 2);
    if (marker < 0xC0 || length < 2 || length > jpeg.size() - at - 2) return std::nullopt;
    const std::span<const std::byte> segment = jpeg.subspan(at + 4, length - 2);
    const bool is_frame =
        marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xCC && marker != 0xC8;
    if (is_frame && (marker > 0xC1 || !read_frame(segment, at + 4, header))) return std::nullopt;
    if (marker == kRestartEvery && segment.size() >= 2) header.interval = word_at(segment, 0);
    at += 2 + length;
    if (marker != kScan) continue;
    if (segment.empty() || byte_at(segment, 0) != header.components || !compute_cells(header))
      return std::nullopt;
    header.layout.scan_offset = at;
    return header.layout;
  }
}

bool Splicer::find_intervals(std::span<const std::byte> jpeg, const RestartLayout& layout,
                             std::size_t wanted) {
  begins_.assign(1, layout.scan_offset);
  const auto* bytes = reinterpret_cast<const unsigned char*>(jpeg.data());
  const std::size_t expected = std::size_t{layout.columns} * ceil_div(layout.height, layout.cell_height);
  std::size_t at = layout.scan_offset;
  for (;;) {
    const void* found = std::memchr(bytes + at, 0xFF, jpeg.size() - at);
    if (!found) return false;
    at = static_cast<std::size_t>(static_cast<const unsigned char*>(found) - bytes);
    if (at + 1 >= jpeg.size()) return false;
    const unsigned next = bytes[at + 1];
    at += 2;
    if (next == 0) continue;  // a stuffed byte
    if (begins_.size() == expected) {
      begins_.push_back(at);
      return next == kEnd;
    }
    if (next != kRestart0 + (begins_.size() - 1) % 8) return false;
    begins_.push_back(at);
    if (begins_.size() > wanted) return true;
  }
}

void Splicer::copy_interval(std::span<const std::byte> jpeg, std::size_t interval) {
  const auto data = jpeg.begin();
  out_.insert(out_.end(), data + static_cast<std::ptrdiff_t>(begins_[interval]),
              data + static_cast<std::ptrdiff_t>(begins_[interval + 1] - 2));
}

std::optional<std::span<const std::byte>> Splicer::splice(std::span<const std::byte> jpeg,
                                                          const RestartLayout& layout,
                                                          const ImageRegion& wanted, ImageRegion& got) {
  const std::uint32_t first_column = wanted.x / layout.cell_width;
  const std::uint32_t end_column =
      std::min(layout.columns, ceil_div(wanted.x + wanted.width, layout.cell_width));
  const std::uint32_t first_row = wanted.y / layout.cell_height;
  const std::uint32_t rows = ceil_div(layout.height, layout.cell_height);
  const std::uint32_t end_row = std::min(rows, ceil_div(wanted.y + wanted.height, layout.cell_height));
  if (end_column - first_column == layout.columns && end_row - first_row == rows) return std::nullopt;
  if (!find_intervals(jpeg, layout, std::size_t{end_row} * layout.columns)) return std::nullopt;
  got.x = first_column * layout.cell_width;
  got.y = first_row * layout.cell_height;
  got.width = std::min(layout.width, end_column * layout.cell_width) - got.x;
  got.height = std::min(layout.height, end_row * layout.cell_height) - got.y;
  out_.assign(jpeg.begin(), jpeg.begin() + static_cast<std::ptrdiff_t>(layout.scan_offset));
  put_word(out_, layout.size_offset, got.height);
  put_word(out_, layout.size_offset + 2, got.width);
  unsigned written = 0;
  for (std::uint32_t row = first_row; row < end_row; ++row) {
    for (std::uint32_t column = first_column; column < end_column; ++column) {
      if (written > 0) {
        out_.push_back(std::byte{0xFF});
        out_.push_back(static_cast<std::byte>(kRestart0 + (written - 1) % 8));
      }
      copy_interval(jpeg, std::size_t{row} * layout.columns + column);
      ++written;
    }
  }
  out_.push_back(std::byte{0xFF});
  out_.push_back(std::byte{kEnd});
  return std::span<const std::byte>(out_);
}

}  // namespace stoker::image::codecs
