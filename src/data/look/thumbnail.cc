#include "data/look/thumbnail.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h uses FILE without including it
#include <cstdlib>

#include <jpeglib.h>

#include "data/decode/decode.h"
#include "data/transform/resize.h"

namespace stoker::data {

namespace {

struct Compressor {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf jump;
  unsigned char* out = nullptr;
  unsigned long bytes = 0;
  ~Compressor() {
    jpeg_destroy_compress(&jpeg);
    std::free(out);
  }
};

[[noreturn]] void fail(j_common_ptr jpeg) {
  std::longjmp(static_cast<Compressor*>(jpeg->client_data)->jump, 1);
}

// May be left by a jump: nothing in it has a destructor.
bool compress(Compressor& c, const ImageView& image) {
  if (setjmp(c.jump)) return false;
  c.jpeg.err = jpeg_std_error(&c.errors);
  c.errors.error_exit = fail;
  c.jpeg.client_data = &c;
  jpeg_create_compress(&c.jpeg);
  c.jpeg.client_data = &c;
  jpeg_mem_dest(&c.jpeg, &c.out, &c.bytes);
  c.jpeg.image_width = image.width;
  c.jpeg.image_height = image.height;
  c.jpeg.input_components = 3;
  c.jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&c.jpeg);
  jpeg_set_quality(&c.jpeg, 85, TRUE);
  jpeg_start_compress(&c.jpeg, TRUE);
  while (c.jpeg.next_scanline < c.jpeg.image_height) {
    auto* row =
        const_cast<JSAMPROW>(image.pixels.data() + std::size_t{3} * image.width * c.jpeg.next_scanline);
    jpeg_write_scanlines(&c.jpeg, &row, 1);
  }
  jpeg_finish_compress(&c.jpeg);
  return true;
}

}  // namespace

Result<Thumbnail> make_thumbnail(std::span<const std::byte> bytes, std::uint32_t side) {
  Image image;
  RETURN_IF_ERROR(decode_image(bytes, image));
  const std::uint64_t longest = std::max(image.width, image.height);
  const auto shrunk = [&](std::uint32_t edge) {
    return longest <= side
               ? edge
               : static_cast<std::uint32_t>(std::max<std::uint64_t>(1, edge * std::uint64_t{side} / longest));
  };
  const std::uint32_t width = shrunk(image.width);
  const std::uint32_t height = shrunk(image.height);
  Resizer resizer;
  resizer.start({.part = {0, 0, image.width, image.height},
                 .width = width,
                 .height = height,
                 .window = {0, 0, width, height},
                 .filter = Filter::bilinear});
  resizer.take({.image = image.view(), .x = 0, .y = 0});
  Compressor compressor;
  if (!compress(compressor, resizer.all())) return internal("a thumbnail could not be made");
  return Thumbnail{.jpeg = {reinterpret_cast<const char*>(compressor.out), compressor.bytes},
                   .width = image.width,
                   .height = image.height};
}

}  // namespace stoker::data
