#include "image/encode.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>  // jpeglib.h uses FILE without including it
#include <cstdlib>
#include <string_view>

#include <jpeglib.h>
#include <png.h>
#include <webp/encode.h>

namespace stoker::image {

namespace {

struct Segment {
  int marker = 0;
  std::span<const std::byte> content;
};

// The segments before the first scan that describe the picture and not its coding.
std::vector<Segment> metadata_segments(std::span<const std::byte> jpeg) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned>(jpeg[i]); };
  const auto starts = [](std::span<const std::byte> content, std::string_view text) {
    return content.size() >= text.size() &&
           std::equal(text.begin(), text.end(), reinterpret_cast<const char*>(content.data()));
  };
  std::vector<Segment> metadata;
  for (std::size_t i = 2; i + 4 <= jpeg.size() && at(i) == 0xFF;) {
    const unsigned marker = at(i + 1);
    const std::size_t length = at(i + 2) << 8 | at(i + 3);
    if (marker == 0xDA || length < 2 || length > jpeg.size() - i - 2) break;
    const std::span<const std::byte> content = jpeg.subspan(i + 4, length - 2);
    const bool is_metadata = marker == JPEG_COM || (marker >= JPEG_APP0 && marker <= JPEG_APP0 + 15);
    // The codec writes these two itself.
    const bool is_own = (marker == JPEG_APP0 && starts(content, "JFIF")) ||
                        (marker == JPEG_APP0 + 14 && starts(content, "Adobe"));
    if (is_metadata && !is_own) metadata.push_back({static_cast<int>(marker), content});
    i += 2 + length;
  }
  return metadata;
}

struct Compressor {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf jump;
  unsigned char* out = nullptr;
  unsigned long bytes = 0;
  Compressor() = default;
  ~Compressor() {
    jpeg_destroy_compress(&jpeg);
    std::free(out);
  }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
};

[[noreturn]] void fail(j_common_ptr jpeg) {
  std::longjmp(static_cast<Compressor*>(jpeg->client_data)->jump, 1);
}

// libjpeg may jump out of it: nothing in it has a destructor. `row` has space for one row.
bool compress(Compressor& c, const ImageView& image, const Encoding& encoding,
              const std::vector<Segment>& metadata, std::vector<unsigned char>& grey) {
  if (setjmp(c.jump)) return false;
  c.jpeg.err = jpeg_std_error(&c.errors);
  c.errors.error_exit = fail;
  c.errors.output_message = [](j_common_ptr) {};
  c.jpeg.client_data = &c;
  jpeg_create_compress(&c.jpeg);
  jpeg_mem_dest(&c.jpeg, &c.out, &c.bytes);
  c.jpeg.image_width = image.width;
  c.jpeg.image_height = image.height;
  c.jpeg.input_components = encoding.is_grey ? 1 : 3;
  c.jpeg.in_color_space = encoding.is_grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&c.jpeg);
  c.jpeg.optimize_coding = TRUE;
  jpeg_set_quality(&c.jpeg, encoding.quality, TRUE);
  jpeg_start_compress(&c.jpeg, TRUE);
  for (const Segment& segment : metadata) {
    jpeg_write_marker(&c.jpeg, segment.marker, reinterpret_cast<const JOCTET*>(segment.content.data()),
                      static_cast<unsigned>(segment.content.size()));
  }
  while (c.jpeg.next_scanline < c.jpeg.image_height) {
    auto* row =
        const_cast<JSAMPROW>(image.pixels.data() + std::size_t{3} * image.width * c.jpeg.next_scanline);
    if (encoding.is_grey) {
      for (std::size_t x = 0; x < image.width; ++x) grey[x] = row[3 * x];
      row = grey.data();
    }
    jpeg_write_scanlines(&c.jpeg, &row, 1);
  }
  jpeg_finish_compress(&c.jpeg);
  return true;
}

std::vector<std::byte> copy_of(const unsigned char* bytes, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes);
  return {begin, begin + size};
}

Result<std::vector<std::byte>> to_jpeg(const ImageView& image, const Encoding& encoding) {
  const std::vector<Segment> metadata = metadata_segments(encoding.metadata_from);
  std::vector<unsigned char> grey(encoding.is_grey ? image.width : 0);
  Compressor compressor;
  if (!compress(compressor, image, encoding, metadata, grey)) return internal("JPEG: the encoder failed");
  return copy_of(compressor.out, compressor.bytes);
}

Result<std::vector<std::byte>> to_webp(const ImageView& image, int quality) {
  std::uint8_t* out = nullptr;
  const std::size_t size =
      WebPEncodeRGB(image.pixels.data(), static_cast<int>(image.width), static_cast<int>(image.height),
                    static_cast<int>(3 * image.width), static_cast<float>(quality), &out);
  if (size == 0) return internal("WebP: the encoder failed");
  std::vector<std::byte> bytes = copy_of(out, size);
  WebPFree(out);
  return bytes;
}

}  // namespace

Result<std::vector<std::byte>> encode_image(const ImageView& image, const Encoding& encoding) {
  switch (encoding.kind) {
    case ImageKind::png:
      return encode_png(image.width, image.height, 3, std::as_bytes(image.pixels));
    case ImageKind::webp:
      return to_webp(image, encoding.quality);
    case ImageKind::jpeg:
      break;
  }
  return to_jpeg(image, encoding);
}

Result<std::vector<std::byte>> encode_png(std::uint32_t width, std::uint32_t height, std::uint32_t channels,
                                          std::span<const std::byte> pixels) {
  constexpr std::array<png_uint_32, 5> kFormats = {0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
                                                   PNG_FORMAT_RGBA};
  STOKER_CHECK(channels > 0 && channels < kFormats.size() &&
               pixels.size() == std::size_t{width} * height * channels);
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = width;
  png.height = height;
  png.format = kFormats[channels];
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::vector<std::byte> out(size);
  if (!png_image_write_to_memory(&png, out.data(), &size, 0, pixels.data(), 0, nullptr)) {
    return internal("PNG: {}", std::string_view(png.message));
  }
  out.resize(size);
  return out;
}

}  // namespace stoker::image
