// Decodes JPEG, PNG and WebP to 8-bit RGB. The bytes are untrusted: the result is pixels or an error, within
// bounded memory. Used by pack and by the loader's threads. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "image/decode/image.h"
#include "stoker/status.h"

namespace stoker::image {

enum class ImageKind { jpeg, png, webp };
/// "JPEG", "PNG", "WebP".
std::string_view to_text(ImageKind kind);

/// The kind announced by the first bytes, whatever the file name. Fails with Invalid for anything else.
Result<ImageKind> image_kind(std::span<const std::byte> bytes);

/// First bytes that are needed to recognise the kind.
constexpr std::size_t kImageHeaderBytes = 16;
/// The extension of a file with these first bytes: "jpg", "png", "webp", or empty if it is not an image.
std::string_view image_extension(std::span<const std::byte> bytes);

/// Larger images are refused before memory is allocated.
struct DecodeLimits {
  std::uint64_t pixels = 100'000'000;
};

/// The contents of the header.
struct ImageInfo {
  ImageKind kind = ImageKind::jpeg;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels =
      0;                     ///< stored: 1 grey, 2 grey with alpha, 3 colour or palette, 4 CMYK or with alpha
  bool progressive = false;  ///< a progressive JPEG: about three times slower to decode

  bool operator==(const ImageInfo&) const = default;
};

/// Reads the header only: a truncated or damaged body is not detected.
Result<ImageInfo> inspect_image(std::span<const std::byte> bytes, const DecodeLimits& limits = {});

/// Decodes to RGB like Pillow's convert("RGB"): grey is copied to all channels, palettes are looked up, CMYK
/// is read as Adobe stores it, alpha is dropped, 16 bits lose the low 8, no colour management, no EXIF
/// rotation. The same bytes decode to the same pixels on every machine. Fails with Corrupt for damaged and
/// incomplete images (also a JPEG without its end marker), with Invalid for unsupported kinds and sizes
/// beyond the limit. `out` is then unspecified. The message starts with the kind; the caller adds the file.
Status decode_image(std::span<const std::byte> bytes, Image& out, const DecodeLimits& limits = {});

/// Decodes parts of images. Keeps scratch memory between images. Thread-compatible.
class Decoder {
 public:
  Decoder();
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// Reads the header of the next image. `file` must outlive decode().
  Result<ImageInfo> open(std::span<const std::byte> file, const DecodeLimits& limits = {});
  /// Decodes at least `wanted` into `out`, and sets `got` to the decoded part of the image. The pixels of
  /// `wanted` are identical to decode_image; the surrounding ones may differ. A JPEG is decoded up to its
  /// last wanted row, so later damage is not detected. Fails as decode_image does.
  /// With a `reduction` of 2, 4 or 8, decoding makes the image that many times smaller, with its sides
  /// rounded up. `wanted` and `got` are regions of the smaller image.
  /// REQUIRES: open() succeeded and this was not called since; `wanted` is inside the image and not empty;
  /// can_reduce(), or a reduction of 1.
  Status decode(const ImageRegion& wanted, Image& out, ImageRegion& got, std::uint32_t reduction = 1);
  /// Whether the open image can be decoded at a smaller size: a JPEG.
  bool can_reduce() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker::image
