#include "image/decode/decode.h"

#include <algorithm>
#include <new>

#include "image/decode/decode_internal.h"
#include "image/decode/jpeg.h"
#include "image/decode/png.h"
#include "image/decode/webp.h"

namespace stoker::image {
namespace {

bool starts_with(std::span<const std::byte> bytes, std::string_view magic, std::size_t at = 0) {
  if (bytes.size() < at + magic.size()) return false;
  return std::equal(magic.begin(), magic.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char expected, std::byte found) { return static_cast<std::byte>(expected) == found; });
}

}  // namespace

std::string_view to_text(ImageKind kind) {
  switch (kind) {
    case ImageKind::jpeg:
      return "JPEG";
    case ImageKind::png:
      return "PNG";
    case ImageKind::webp:
      return "WebP";
  }
  return "";
}

Result<ImageKind> image_kind(std::span<const std::byte> bytes) {
  if (starts_with(bytes, "\xFF\xD8\xFF")) return ImageKind::jpeg;
  if (starts_with(bytes, "\x89PNG\r\n\x1A\n")) return ImageKind::png;
  if (starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8)) return ImageKind::webp;
  if (bytes.empty()) return invalid("not an image: 0 bytes");
  return invalid("not a JPEG, PNG or WebP image: starts with {}",
                 hex(bytes.first(std::min<std::size_t>(4, bytes.size()))));
}

std::string_view image_extension(std::span<const std::byte> bytes) {
  const Result<ImageKind> kind = image_kind(bytes);
  if (!kind.ok()) return "";
  switch (*kind) {
    case ImageKind::jpeg:
      return "jpg";
    case ImageKind::png:
      return "png";
    case ImageKind::webp:
      return "webp";
  }
  return "";
}

Result<ImageInfo> inspect_image(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  STOKER_ASSIGN_OR_RETURN(kind, image_kind(bytes));
  switch (kind) {
    case ImageKind::jpeg:
      return codecs::inspect_jpeg(bytes, limits);
    case ImageKind::png:
      return codecs::inspect_png(bytes, limits);
    case ImageKind::webp:
      return codecs::inspect_webp(bytes, limits);
  }
  return internal("image kind {} has no decoder", static_cast<int>(kind));
}

Status decode_image(std::span<const std::byte> bytes, Image& out, const DecodeLimits& limits) {
  STOKER_ASSIGN_OR_RETURN(kind, image_kind(bytes));
  switch (kind) {
    case ImageKind::jpeg:
      return codecs::decode_jpeg(bytes, out, limits);
    case ImageKind::png:
      return codecs::decode_png(bytes, out, limits);
    case ImageKind::webp:
      return codecs::decode_webp(bytes, out, limits);
  }
  return internal("image kind {} has no decoder", static_cast<int>(kind));
}

struct Decoder::Impl {
  codecs::JpegReader jpeg;
  std::span<const std::byte> file;
  ImageInfo info;
  DecodeLimits limits;
};

Decoder::Decoder() : impl_(std::make_unique<Impl>()) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

Result<ImageInfo> Decoder::open(std::span<const std::byte> file, const DecodeLimits& limits) {
  STOKER_ASSIGN_OR_RETURN(kind, image_kind(file));
  STOKER_ASSIGN_OR_RETURN(
      info, kind == ImageKind::jpeg ? impl_->jpeg.open(file, limits) : inspect_image(file, limits));
  impl_->file = file;
  impl_->info = info;
  impl_->limits = limits;
  return info;
}

bool Decoder::can_reduce() const { return impl_->info.kind == ImageKind::jpeg; }

Status Decoder::decode(const ImageRegion& wanted, Image& out, ImageRegion& got, std::uint32_t reduction) {
  if (impl_->info.kind == ImageKind::jpeg) return impl_->jpeg.decode(wanted, reduction, out, got);
  got = {0, 0, impl_->info.width, impl_->info.height};
  return decode_image(impl_->file, out, impl_->limits);
}

namespace codecs {

Status check_size(ImageKind kind, std::uint64_t width, std::uint64_t height, const DecodeLimits& limits) {
  if (width == 0 || height == 0) return corrupt("{}: {} x {} pixels", to_text(kind), width, height);
  if (height > limits.pixels / width) {
    return invalid("{}: {} x {} pixels are too many (at most {})", to_text(kind), width, height,
                   limits.pixels);
  }
  return Status();
}

Status allocate_pixels(Image& image, std::uint32_t width, std::uint32_t height) {
  const std::size_t size = std::size_t{3} * width * height;
  try {
    image.pixels.resize(size);
  } catch (const std::bad_alloc&) {
    return unavailable("no memory for {} x {} pixels", width, height);
  }
  image.width = width;
  image.height = height;
  return Status();
}

}  // namespace codecs
}  // namespace stoker::image
