// JPEG, PNG and WebP to 8-bit RGB, from bytes that nobody vouches for: whatever they hold, the answer is
// pixels or an error, within bounded memory. Used by pack and by the loader's threads. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "data/decode/image.h"

namespace stoker::data {

enum class ImageKind { jpeg, png, webp };
/// "JPEG", "PNG", "WebP".
std::string_view to_text(ImageKind kind);

/// The kind its first bytes announce, whatever the file is called. Fails with Invalid for anything else.
Result<ImageKind> image_kind(std::span<const std::byte> bytes);

/// So many first bytes are enough to tell the kind.
constexpr std::size_t kImageHead = 16;
/// What a file with these first bytes is called: "jpg", "png", "webp", or empty for what is no image.
std::string_view image_extension(std::span<const std::byte> bytes);

/// Larger images are refused before memory is taken for them.
struct DecodeLimits {
  std::uint64_t pixels = 100'000'000;
};

/// What the header says.
struct ImageInfo {
  ImageKind kind = ImageKind::jpeg;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels =
      0;                     ///< stored: 1 grey, 2 grey with alpha, 3 colour or palette, 4 CMYK or with alpha
  bool progressive = false;  ///< a progressive JPEG: about three times slower to decode

  bool operator==(const ImageInfo&) const = default;
};

/// Reads the header only: a body that is cut off or damaged is not noticed.
Result<ImageInfo> inspect_image(std::span<const std::byte> bytes, const DecodeLimits& limits = {});

/// Decodes to RGB as Pillow's convert("RGB") does: grey is copied to all channels, palettes are looked up,
/// CMYK is taken as Adobe stores it, alpha is dropped, 16 bits lose the low 8, no colour management, no EXIF
/// rotation. The same bytes give the same pixels on every machine. Fails with Corrupt for damaged and for
/// incomplete images (a JPEG without its end marker too), with Invalid for kinds that are not supported or
/// beyond the limit. `out` is then unspecified. The text starts with the kind; the caller adds which file.
Status decode_image(std::span<const std::byte> bytes, Image& out, const DecodeLimits& limits = {});

/// Decodes images of which only a part may be wanted. Keeps scratch memory between images. Thread-compatible.
class Decoder {
 public:
  Decoder();
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// Reads the header of the next image. `file` must stay until it is decoded.
  Result<ImageInfo> open(std::span<const std::byte> file, const DecodeLimits& limits = {});
  /// Decodes at least `wanted` into `out`, and says in `got` which part of the image that is. The pixels of
  /// `wanted` are those of decode_image; those around it may not be. A JPEG is decoded no further than its
  /// last wanted row, so that damage behind it is not noticed. Fails as decode_image does.
  /// With a `reduction` of 2, 4 or 8 the image is made so many times smaller while it is decoded, its sides
  /// rounded up; `wanted` and `got` are of that smaller one.
  /// REQUIRES: open() succeeded and this was not called since; `wanted` lies in the image and is not empty;
  /// can_reduce(), or a reduction of 1.
  Status decode(const Region& wanted, Image& out, Region& got, std::uint32_t reduction = 1);
  /// Whether the image that is open can be decoded smaller than it is: a JPEG.
  bool can_reduce() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker::data
