#include "image/decode/png.h"

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <vector>

#include <png.h>

#include "image/decode/decode_internal.h"

namespace stoker::image::codecs {
namespace {

// Compressed text and profiles may unpack to any size; none of them is needed.
constexpr png_alloc_size_t kLargestChunk = 8u << 20;

// libpng reports errors by a callback that must not return: it jumps back into attempt(). Every object with a
// destructor therefore lives outside the function given to attempt().
class PngReader {
 public:
  explicit PngReader(std::span<const std::byte> bytes)
      : left_(bytes), png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning)) {
    if (png_) info_ = png_create_info_struct(png_);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  template <typename Body>
  Status attempt(Body body) {
    if (setjmp(jump_)) {
      if (ended_) return corrupt("PNG: ends before the image is complete");
      return corrupt("PNG: {}", std::string_view(text_));
    }
    body(png_, info_);
    return Status();
  }

  Status read_header(const DecodeLimits& limits) {
    if (!png_ || !info_) return unavailable("PNG: no memory");
    STOKER_RETURN_IF_ERROR(attempt([&](png_structp png, png_infop info) {
      png_set_chunk_malloc_max(png, kLargestChunk);
      png_set_read_fn(png, this, on_read);
      png_read_info(png, info);
    }));
    return check_size(ImageKind::png, png_get_image_width(png_, info_), png_get_image_height(png_, info_),
                      limits);
  }

  png_structp png() { return png_; }
  png_infop info() { return info_; }

 private:
  static void on_error(png_structp png, png_const_charp message) {
    auto* self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self->text_, message, sizeof self->text_ - 1);
    std::longjmp(self->jump_, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep to, std::size_t size) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (size > self->left_.size()) {
      self->ended_ = true;
      png_error(png, "end of data");
    }
    std::memcpy(to, self->left_.data(), size);
    self->left_ = self->left_.subspan(size);
  }

  std::span<const std::byte> left_;
  std::jmp_buf jump_;
  bool ended_ = false;
  char text_[128] = {};
  png_structp png_;
  png_infop info_ = nullptr;
};

void convert_to_rgb(png_structp png, png_infop info) {
  png_set_strip_16(png);
  png_set_expand(png);  // palette, fewer than 8 bits, transparent colour
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

}  // namespace

Result<ImageInfo> inspect_png(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  PngReader reader(bytes);
  STOKER_RETURN_IF_ERROR(reader.read_header(limits));
  const bool is_palette = png_get_color_type(reader.png(), reader.info()) == PNG_COLOR_TYPE_PALETTE;
  const std::uint32_t channels = is_palette ? 3u : png_get_channels(reader.png(), reader.info());
  return ImageInfo{.kind = ImageKind::png,
                   .width = png_get_image_width(reader.png(), reader.info()),
                   .height = png_get_image_height(reader.png(), reader.info()),
                   .channels = channels};
}

Status decode_png(std::span<const std::byte> bytes, Image& out, const DecodeLimits& limits) {
  PngReader reader(bytes);
  STOKER_RETURN_IF_ERROR(reader.read_header(limits));
  STOKER_RETURN_IF_ERROR(allocate_pixels(out, png_get_image_width(reader.png(), reader.info()),
                                         png_get_image_height(reader.png(), reader.info())));
  const std::size_t stride = std::size_t{3} * out.width;
  std::vector<png_bytep> rows(out.height);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = out.pixels.data() + i * stride;
  bool is_rgb = false;
  STOKER_RETURN_IF_ERROR(reader.attempt([&](png_structp png, png_infop info) {
    convert_to_rgb(png, info);
    is_rgb = png_get_rowbytes(png, info) == stride;
    if (!is_rgb) return;
    png_read_image(png, rows.data());
    png_read_end(png, nullptr);
  }));
  if (!is_rgb) return internal("PNG: rows are not {} bytes", stride);
  return Status();
}

}  // namespace stoker::image::codecs
