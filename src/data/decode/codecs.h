// The three decoders behind decode_image. Only this folder includes it. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/status.h"
#include "data/decode/decode.h"

namespace stoker::data::codecs {

Result<ImageInfo> inspect_jpeg(std::span<const std::byte> bytes, const DecodeLimits& limits);
Status decode_jpeg(std::span<const std::byte> bytes, Image& out, const DecodeLimits& limits);

Result<ImageInfo> inspect_png(std::span<const std::byte> bytes, const DecodeLimits& limits);
Status decode_png(std::span<const std::byte> bytes, Image& out, const DecodeLimits& limits);

Result<ImageInfo> inspect_webp(std::span<const std::byte> bytes, const DecodeLimits& limits);
Status decode_webp(std::span<const std::byte> bytes, Image& out, const DecodeLimits& limits);

/// Decodes parts of JPEGs, by splicing where restart markers allow it, else by skipping what lies outside.
class JpegReader {
 public:
  JpegReader();
  ~JpegReader();
  JpegReader(JpegReader&&) noexcept;
  JpegReader& operator=(JpegReader&&) noexcept;

  /// `bytes` must stay while decode() is used.
  Result<ImageInfo> open(std::span<const std::byte> bytes, const DecodeLimits& limits);
  /// As Decoder::decode. REQUIRES: open() succeeded, and this was not called since.
  Status decode(const Region& wanted, std::uint32_t reduction, Image& out, Region& got);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Invalid when an image of that size is empty or beyond the limit.
Status check_size(ImageKind kind, std::uint64_t width, std::uint64_t height, const DecodeLimits& limits);
/// Sets the size and makes room for the pixels; Unavailable when memory is short.
Status make_room(Image& image, std::uint32_t width, std::uint32_t height);

}  // namespace stoker::data::codecs
