#include "pack/images/image_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/hashes/crc32.h"
#include "image/decode/image.h"
#include "image/transform/kernels/kernels.h"
#include "stoker/text.h"

namespace stoker::pack {

namespace {

ImageVerdict bad(std::string_view reason, std::string detail = {}) {
  return {.is_good = false,
          .info = {},
          .channels = {},
          .reason = std::string(reason),
          .detail = std::move(detail)};
}

ImageVerdict good(const image::ImageInfo& info) {
  return {.is_good = true, .info = info, .channels = {}, .reason = {}, .detail = {}};
}

unsigned at(std::span<const std::byte> bytes, std::size_t i) { return static_cast<unsigned>(bytes[i]); }

std::size_t big_endian_16(std::span<const std::byte> bytes, std::size_t i) {
  return at(bytes, i) << 8 | at(bytes, i + 1);
}

std::size_t big_endian_32(std::span<const std::byte> bytes, std::size_t i) {
  return big_endian_16(bytes, i) << 16 | big_endian_16(bytes, i + 2);
}

// The position after entropy-coded data: the next marker except stuffed zeros and restarts.
std::size_t end_of_scan(std::span<const std::byte> bytes, std::size_t i) {
  const image::Kernels& kernels = image::best_kernels();
  while (i + 1 < bytes.size()) {
    i = kernels.skip_scan(reinterpret_cast<const std::uint8_t*>(bytes.data()), i, bytes.size());
    const void* found = std::memchr(bytes.data() + i, 0xFF, bytes.size() - 1 - i);
    if (found == nullptr) return bytes.size();
    i = static_cast<std::size_t>(static_cast<const std::byte*>(found) - bytes.data());
    const unsigned next = at(bytes, i + 1);
    if (next == 0xFF) {
      ++i;  // fill byte
    } else if (next == 0 || (next >= 0xD0 && next <= 0xD7)) {
      i += 2;
    } else {
      return i;
    }
  }
  return bytes.size();
}

// The header of a typical JPEG: 8 bits, Huffman, one frame before its first scan, valid table lengths.
// Nullopt for other headers, which libjpeg checks.
class PlainHeader {
 public:
  // `segment` begins with the length field after the marker.
  void add(unsigned marker, std::span<const std::byte> segment) {
    if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC) {
      read_frame(marker, segment);
    } else if (marker == 0xC4) {
      is_plain_ = is_plain_ && huffman_fits(segment);
    } else if (marker == 0xDB) {
      is_plain_ = is_plain_ && quantization_fits(segment);
    } else if (marker == 0xDA) {
      is_plain_ = is_plain_ && frames_ == 1 && scan_fits(segment);
    } else if (marker == 0xDD) {
      is_plain_ = is_plain_ && segment.size() == 4;  // restart interval
    } else if (!(marker >= 0xE0 && marker <= 0xEF) && marker != 0xFE) {
      is_plain_ = false;  // arithmetic coding, number of lines, hierarchical, a second SOI, unknown markers
    }
  }
  std::optional<image::ImageInfo> info() const {
    return is_plain_ && frames_ == 1 ? std::optional(info_) : std::nullopt;
  }

 private:
  void read_frame(unsigned marker, std::span<const std::byte> segment) {
    constexpr std::uint64_t kMaxPixels = image::DecodeLimits{}.pixels;
    constexpr std::uint32_t kMaxAlong = 65500;  // JPEG_MAX_DIMENSION
    is_plain_ = is_plain_ && marker <= 0xC2 && ++frames_ == 1 && segment.size() >= 8 && at(segment, 2) == 8;
    if (!is_plain_) return;
    const unsigned components = at(segment, 7);
    info_ = {.kind = image::ImageKind::jpeg,
             .width = static_cast<std::uint32_t>(big_endian_16(segment, 5)),
             .height = static_cast<std::uint32_t>(big_endian_16(segment, 3)),
             .channels = components,
             .progressive = marker == 0xC2};
    is_plain_ = (components == 1 || components == 3) && segment.size() == 8 + 3 * components &&
                info_.width > 0 && info_.height > 0 && info_.width <= kMaxAlong &&
                info_.height <= kMaxAlong && std::uint64_t{info_.width} * info_.height <= kMaxPixels;
    for (unsigned c = 0; is_plain_ && c < components; ++c) {
      const unsigned sampling = at(segment, 9 + 3 * c);
      is_plain_ = (sampling & 15) >= 1 && (sampling & 15) <= 4 && sampling >> 4 >= 1 && sampling >> 4 <= 4;
      ids_[c] = at(segment, 8 + 3 * c);
      for (unsigned before = 0; before < c; ++before) is_plain_ = is_plain_ && ids_[before] != ids_[c];
    }
  }

  // All components are in the frame, in its order.
  bool scan_fits(std::span<const std::byte> segment) const {
    if (segment.size() < 3) return false;
    const unsigned components = at(segment, 2);
    if (components < 1 || components > info_.channels || segment.size() != 6 + 2 * components) return false;
    unsigned next = 0;  // of the frame's components
    for (unsigned c = 0; c < components; ++c, ++next) {
      while (next < info_.channels && ids_[next] != at(segment, 3 + 2 * c)) ++next;
    }
    return next <= info_.channels;
  }

  static bool huffman_fits(std::span<const std::byte> segment) {
    std::size_t i = 2;
    while (i + 17 <= segment.size()) {
      std::size_t codes = 0;
      for (std::size_t length = 1; length <= 16; ++length) codes += at(segment, i + length);
      if (codes > 256 || (at(segment, i) & ~0x13u) != 0) return false;
      i += 17 + codes;
    }
    return i == segment.size();
  }

  static bool quantization_fits(std::span<const std::byte> segment) {
    std::size_t i = 2;
    while (i < segment.size()) {
      const unsigned table = at(segment, i);
      if ((table & 15) > 3 || table >> 4 > 1) return false;
      i += 1 + (table >> 4 == 0 ? 64u : 128u);
    }
    return i == segment.size();
  }

  bool is_plain_ = true;
  int frames_ = 0;
  image::ImageInfo info_;
  std::array<unsigned, 3> ids_{};  // of the frame's components
};

// Walks the markers to the end of the image (EOI). Bytes after it are ignored: cameras store previews there.
ImageVerdict scan_jpeg(std::span<const std::byte> bytes, PlainHeader& header) {
  bool has_scan = false;
  std::size_t i = 2;
  for (;;) {
    // Bytes between segments are skipped, as libjpeg does.
    while (i + 1 < bytes.size() &&
           !(at(bytes, i) == 0xFF && at(bytes, i + 1) != 0xFF && at(bytes, i + 1) != 0))
      ++i;
    if (i + 1 >= bytes.size()) return bad("truncated", "JPEG without its end marker");
    const unsigned marker = at(bytes, i + 1);
    if (marker == 0xD9) break;
    i += 2;
    if (!has_scan && marker == 0xD8) header.add(marker, {});
    if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) continue;
    if (bytes.size() - i < 2) return bad("truncated", "JPEG without its end marker");
    const std::size_t length = big_endian_16(bytes, i);
    if (length < 2) return bad("broken", format("JPEG segment of length {} at byte {}", length, i));
    if (length > bytes.size() - i) return bad("truncated", "JPEG ends inside a segment");
    if (!has_scan) header.add(marker, bytes.subspan(i, length));
    i += length;
    if (marker != 0xDA) continue;
    has_scan = true;
    i = end_of_scan(bytes, i);
  }
  if (!has_scan) return bad("broken", "JPEG without image data");
  return good({.kind = image::ImageKind::jpeg});
}

ImageVerdict scan_png(std::span<const std::byte> bytes, const image::ImageInfo& info) {
  constexpr std::size_t kSignature = 8;
  constexpr std::size_t kAround = 12;  // length, type, CRC
  std::size_t i = kSignature;
  for (;;) {
    if (bytes.size() - i < kAround) return bad("truncated", "PNG without its end chunk");
    const std::size_t length = big_endian_32(bytes, i);
    if (length > bytes.size() - i - kAround) return bad("truncated", "PNG ends inside a chunk");
    const std::span<const std::byte> covered = bytes.subspan(i + 4, length + 4);
    if (crc32(covered) != big_endian_32(bytes, i + 8 + length)) {
      return bad("broken", format("PNG chunk at byte {} has a wrong CRC", i));
    }
    if (std::memcmp(covered.data(), "IEND", 4) == 0) break;
    i += length + kAround;
  }
  return good(info);
}

ImageVerdict scan_webp(std::span<const std::byte> bytes, const image::ImageInfo& info) {
  const std::size_t length = at(bytes, 4) | at(bytes, 5) << 8 | at(bytes, 6) << 16 | at(bytes, 7) << 24;
  if (length + 8 > bytes.size()) {
    return bad("truncated", format("WebP of {} bytes, its header declares {}", bytes.size(), length + 8));
  }
  return good(info);
}

// Decoders report truncation only in their message.
std::string_view reason_of(const Status& status) {
  return status.message().find("ends before") != std::string_view::npos ? "truncated" : "broken";
}

}  // namespace

ImageVerdict scan_image(std::span<const std::byte> bytes) {
  if (bytes.empty()) return bad("empty");
  const Result<image::ImageKind> kind = image::image_kind(bytes);
  if (!kind.ok()) return bad("not an image");
  ImageVerdict verdict;
  if (*kind == image::ImageKind::jpeg) {
    PlainHeader header;
    verdict = scan_jpeg(bytes, header);
    if (!verdict.is_good) return verdict;
    if (const std::optional<image::ImageInfo> info = header.info()) return good(*info);
  }
  // Scanning the body distinguishes a truncated header from a damaged one.
  const Result<image::ImageInfo> info = image::inspect_image(bytes);
  const image::ImageInfo found = info.ok() ? *info : image::ImageInfo{.kind = *kind};
  if (*kind == image::ImageKind::png)
    verdict = bytes.size() < 8 ? bad("truncated", "PNG without its end chunk") : scan_png(bytes, found);
  if (*kind == image::ImageKind::webp)
    verdict = bytes.size() < 12 ? bad("truncated") : scan_webp(bytes, found);
  if (verdict.is_good && !info.ok())
    return bad(reason_of(info.status()), std::string(info.status().message()));
  return *kind == image::ImageKind::jpeg && verdict.is_good ? good(found) : verdict;
}

namespace {

dataset::ChannelSums sums_of(const image::Image& image) {
  dataset::ChannelSums sums;
  const std::size_t pixels = std::size_t{image.width} * image.height;
  constexpr std::size_t kAtOnce = 32768;  // the sum of this many squared bytes fits 32 bits
  for (std::size_t begin = 0; begin < pixels; begin += kAtOnce) {
    const std::size_t end = std::min(pixels, begin + kAtOnce);
    std::array<std::uint32_t, 3> sum{};
    std::array<std::uint32_t, 3> square{};
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::uint32_t value = image.pixels[3 * i + c];
        sum[c] += value;
        square[c] += value * value;
      }
    }
    for (std::size_t c = 0; c < 3; ++c) {
      sums.sum[c] += sum[c];
      sums.square_sum[c] += square[c];
    }
  }
  sums.pixels = pixels;
  return sums;
}

}  // namespace

ImageVerdict decode_check(std::span<const std::byte> bytes) {
  ImageVerdict verdict = scan_image(bytes);
  if (!verdict.is_good) return verdict;
  thread_local image::Image pixels;  // reused for its memory
  if (Status status = decode_image(bytes, pixels); !status.ok()) {
    return bad(reason_of(status), std::string(status.message()));
  }
  verdict.channels = sums_of(pixels);
  return verdict;
}

}  // namespace stoker::pack
