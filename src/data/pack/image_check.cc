#include "data/pack/image_check.h"

#include <cstring>

#include <isa-l/crc.h>

#include "base/text.h"
#include "data/decode/image.h"

namespace stoker::data {

namespace {

ImageVerdict bad(std::string_view reason, std::string detail = {}) {
  return {.is_good = false, .info = {}, .reason = std::string(reason), .detail = std::move(detail)};
}

unsigned at(std::span<const std::byte> bytes, std::size_t i) { return static_cast<unsigned>(bytes[i]); }

std::size_t big_endian_16(std::span<const std::byte> bytes, std::size_t i) {
  return at(bytes, i) << 8 | at(bytes, i + 1);
}

std::size_t big_endian_32(std::span<const std::byte> bytes, std::size_t i) {
  return big_endian_16(bytes, i) << 16 | big_endian_16(bytes, i + 2);
}

// CRC-32 as PNG and gzip have it.
std::uint32_t png_crc(std::span<const std::byte> bytes) {
  // ISA-L reads only; its parameter lacks the const in some versions.
  auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  return crc32_gzip_refl(0, data, bytes.size());
}

// The position behind entropy-coded data: of the next marker that is neither a stuffed zero nor a restart.
std::size_t end_of_scan(std::span<const std::byte> bytes, std::size_t i) {
  while (i + 1 < bytes.size()) {
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

// Walks marker by marker to the end of the image (EOI). What follows it is no business of ours: cameras put
// previews there.
ImageVerdict scan_jpeg(std::span<const std::byte> bytes, const ImageInfo& info) {
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
    if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) continue;
    if (bytes.size() - i < 2) return bad("truncated", "JPEG without its end marker");
    const std::size_t length = big_endian_16(bytes, i);
    if (length < 2) return bad("broken", format("JPEG segment of length {} at byte {}", length, i));
    if (length > bytes.size() - i) return bad("truncated", "JPEG ends inside a segment");
    i += length;
    if (marker != 0xDA) continue;
    has_scan = true;
    i = end_of_scan(bytes, i);
  }
  if (!has_scan) return bad("broken", "JPEG without image data");
  return {.is_good = true, .info = info, .reason = {}, .detail = {}};
}

ImageVerdict scan_png(std::span<const std::byte> bytes, const ImageInfo& info) {
  constexpr std::size_t kSignature = 8;
  constexpr std::size_t kAround = 12;  // length, type, CRC
  std::size_t i = kSignature;
  for (;;) {
    if (bytes.size() - i < kAround) return bad("truncated", "PNG without its end chunk");
    const std::size_t length = big_endian_32(bytes, i);
    if (length > bytes.size() - i - kAround) return bad("truncated", "PNG ends inside a chunk");
    const std::span<const std::byte> covered = bytes.subspan(i + 4, length + 4);
    if (png_crc(covered) != big_endian_32(bytes, i + 8 + length)) {
      return bad("broken", format("PNG chunk at byte {} has a wrong CRC", i));
    }
    if (std::memcmp(covered.data(), "IEND", 4) == 0) break;
    i += length + kAround;
  }
  return {.is_good = true, .info = info, .reason = {}, .detail = {}};
}

ImageVerdict scan_webp(std::span<const std::byte> bytes, const ImageInfo& info) {
  const std::size_t length = at(bytes, 4) | at(bytes, 5) << 8 | at(bytes, 6) << 16 | at(bytes, 7) << 24;
  if (length + 8 > bytes.size()) {
    return bad("truncated", format("WebP of {} bytes, its header says {}", bytes.size(), length + 8));
  }
  return {.is_good = true, .info = info, .reason = {}, .detail = {}};
}

// The word for an error of the decoders, which know truncation only in their text.
std::string_view reason_of(const Status& status) {
  return status.message().find("ends before") != std::string_view::npos ? "truncated" : "broken";
}

}  // namespace

ImageVerdict scan_image(std::span<const std::byte> bytes) {
  if (bytes.empty()) return bad("empty");
  const Result<ImageKind> kind = image_kind(bytes);
  if (!kind.ok()) return bad("not an image");
  const Result<ImageInfo> info = inspect_image(bytes);
  // A header that is cut off is told from a damaged one by walking the file.
  const ImageInfo found = info.ok() ? *info : ImageInfo{.kind = *kind};
  ImageVerdict verdict;
  if (*kind == ImageKind::jpeg) verdict = scan_jpeg(bytes, found);
  if (*kind == ImageKind::png)
    verdict = bytes.size() < 8 ? bad("truncated", "PNG without its end chunk") : scan_png(bytes, found);
  if (*kind == ImageKind::webp) verdict = bytes.size() < 12 ? bad("truncated") : scan_webp(bytes, found);
  if (verdict.is_good && !info.ok())
    return bad(reason_of(info.status()), std::string(info.status().message()));
  return verdict;
}

ImageVerdict decode_check(std::span<const std::byte> bytes) {
  ImageVerdict verdict = scan_image(bytes);
  if (!verdict.is_good) return verdict;
  thread_local Image pixels;  // kept between files: its memory is the cost
  if (Status status = decode_image(bytes, pixels); !status.ok()) {
    return bad(reason_of(status), std::string(status.message()));
  }
  return verdict;
}

}  // namespace stoker::data
