#include "image/decode/exif.h"

#include <cstdint>
#include <string_view>

namespace stoker::image {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kExif("Exif\0\0", 6);

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Numbers in the byte order of a TIFF block or a chunk. Zero beyond the end.
class ExifNumbers {
 public:
  ExifNumbers(Bytes bytes, bool is_big_endian) : bytes_(bytes), is_big_endian_(is_big_endian) {}

  std::uint32_t read(std::size_t offset, std::size_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t at = offset + (is_big_endian_ ? i : size - 1 - i);
      value = value << 8 | static_cast<std::uint32_t>(bytes_[at]);
    }
    return value;
  }

 private:
  Bytes bytes_;
  bool is_big_endian_;
};

// The first directory of a TIFF block.
unsigned orientation_of_tiff(Bytes tiff) {
  constexpr std::uint32_t kOrientation = 0x0112;
  constexpr std::uint32_t kShort = 3;
  constexpr std::size_t kEntry = 12;
  const std::string_view order = text_of(tiff).substr(0, 2);
  if (order != "II" && order != "MM") return 1;
  const ExifNumbers numbers(tiff, order == "MM");
  if (numbers.read(2, 2) != 42) return 1;
  const std::size_t directory = numbers.read(4, 4);
  const std::uint32_t entries = numbers.read(directory, 2);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntry;
    if (entry >= tiff.size()) return 1;
    if (numbers.read(entry, 2) != kOrientation) continue;
    const std::uint32_t value = numbers.read(entry + 8, 2);
    return numbers.read(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

// The block of an APP1 segment before the first scan.
Bytes tiff_of_jpeg(Bytes file) {
  const ExifNumbers numbers(file, true);
  std::size_t at = 2;
  while (at + 4 <= file.size()) {
    const std::uint32_t marker = numbers.read(at, 2);
    if (marker == 0xFFFF) {  // a fill byte
      ++at;
      continue;
    }
    const std::size_t length = numbers.read(at + 2, 2);
    if (marker < 0xFFC0 || marker == 0xFFDA || marker == 0xFFD9 || length < 2) return {};
    if (length > file.size() - at - 2) return {};
    const Bytes segment = file.subspan(at + 4, length - 2);
    if (marker == 0xFFE1 && text_of(segment).starts_with(kExif)) return segment.subspan(kExif.size());
    at += 2 + length;
  }
  return {};
}

// The content of the first chunk of that name. In a PNG the length comes before the name.
Bytes chunk(Bytes file, std::size_t at, std::string_view name, bool is_png) {
  const ExifNumbers numbers(file, is_png);
  while (at + 8 <= file.size()) {
    const std::size_t length = numbers.read(at + (is_png ? 0 : 4), 4);
    if (length > file.size() - at - 8) return {};
    if (text_of(file).substr(at + (is_png ? 4 : 0), 4) == name) return file.subspan(at + 8, length);
    at += 8 + length + (is_png ? 4 : length % 2);  // CRC, or padding to even sizes
  }
  return {};
}

}  // namespace

unsigned exif_orientation(Bytes file) {
  const std::string_view text = text_of(file);
  if (text.starts_with("\xFF\xD8")) return orientation_of_tiff(tiff_of_jpeg(file));
  if (text.starts_with("\x89PNG")) return orientation_of_tiff(chunk(file, 8, "eXIf", true));
  if (!text.starts_with("RIFF")) return 1;
  Bytes block = chunk(file, 12, "EXIF", false);
  if (text_of(block).starts_with(kExif)) block = block.subspan(kExif.size());  // some writers keep the prefix
  return orientation_of_tiff(block);
}

}  // namespace stoker::image
