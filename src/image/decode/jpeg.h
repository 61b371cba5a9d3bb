// The JPEG decoder behind decode_image() and Decoder. Only this folder includes it. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "image/decode/decode.h"
#include "stoker/status.h"

namespace stoker::image::codecs {

Result<ImageInfo> inspect_jpeg(std::span<const std::byte> bytes, const DecodeLimits& limits);
Status decode_jpeg(std::span<const std::byte> bytes, Image& out, const DecodeLimits& limits);

/// Decodes parts of JPEGs: splices at restart markers if possible, else skips the rest of the image.
class JpegReader {
 public:
  JpegReader();
  ~JpegReader();
  JpegReader(JpegReader&&) noexcept;
  JpegReader& operator=(JpegReader&&) noexcept;

  /// `bytes` must outlive decode().
  Result<ImageInfo> open(std::span<const std::byte> bytes, const DecodeLimits& limits);
  /// As Decoder::decode. REQUIRES: open() succeeded, and this was not called since.
  Status decode(const ImageRegion& wanted, std::uint32_t reduction, Image& out, ImageRegion& got);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker::image::codecs
